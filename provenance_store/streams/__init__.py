"""Stream queries and the provenance that follows from their description; the graph and Spark apps import it."""
