"""Bulk traces: backward and forward for many thousands of records at once, by Spark on the reduced graphs."""
