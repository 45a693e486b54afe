"""Stream queries on PySpark Structured Streaming, from the description that their provenance is inferred from."""
