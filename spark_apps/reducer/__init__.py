"""The reducer on Spark: one local reducer a Kafka partition, then the global contraction by joins."""
