"""How messages travel: one small port, with Kafka and recordings behind it. Imports model and settings."""
