MATCH (batch:Batch {run: $run})
DELETE batch
