// Written by the transaction that makes a run's graph visible, so these are always of whole runs.
MATCH (source:Dataset)-[f:FEEDS]->(target:Dataset)
RETURN source.name AS source, target.name AS target, f.dic AS dic, count(f) AS runs, sum(f.edges) AS edges
ORDER BY source, target, dic
