"""The way from Airflow's connections to Headwater's settings."""
