"""From full provenance to the reduced graph: pure functions on columns. Imports the model and the transport's port."""
