"""What a purge does on Spark: finding records by a predicate, rewriting files, making records anew."""
