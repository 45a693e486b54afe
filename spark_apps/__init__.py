"""What runs inside Spark and Hadoop: capture SDK, DICs, reducer. Imports provenance_store, never the reverse."""
