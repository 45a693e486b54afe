// Written by the transaction that makes a run's graph visible, so these are always of whole runs.
MATCH (source:Dataset)-[f:FEEDS]->(target:Dataset)
WHERE $runs IS NULL OR f.run IN $runs
MATCH (run:Run {id: f.run})
RETURN source.name AS source, target.name AS target, f.dic AS dic, count(f) AS runs, sum(f.edges) AS edges,
       collect(DISTINCT run.verdict) AS verdicts, max(run.merged_at) AS merged_at
ORDER BY source, target, dic
