// The runs with visible graphs that lead from or into datasets.
MATCH (dataset:Dataset)-[f:FEEDS]-(:Dataset)
WHERE dataset.name IN $datasets
RETURN DISTINCT f.run AS run
