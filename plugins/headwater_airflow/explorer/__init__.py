"""The explorer: lineage in Airflow's own pages. An API over the lake graph, guarded endpoint by endpoint, and its page.

The page's sources are in `web/`; what is built of them is in `static/`, and is all that a user's browser gets.
"""
