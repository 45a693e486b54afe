"""The lake graph in Neo4j: schema, merge, queries and their rendering. Imports model and settings, nothing upstream."""
