"""The Headwater library: from PROV-JSON messages to lineage answers. Imports neither Spark nor Airflow."""
