// What the run's earlier graph said of datasets; a dataset that nothing else speaks of goes with it.
MATCH (source:Dataset)-[f:FEEDS {run: $run}]->(target:Dataset)
DELETE f
WITH collect(source) + collect(target) AS ends
UNWIND ends AS dataset
WITH DISTINCT dataset
WHERE NOT EXISTS { (dataset)--() } AND NOT dataset.name IN $kept
DELETE dataset
