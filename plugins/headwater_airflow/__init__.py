"""Headwater in Airflow: hooks, operators, triggers and pages. Imports Airflow and the library; nothing imports it."""
