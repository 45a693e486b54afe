// Written by the transaction that makes a run's graph visible, so these are of whole runs, or of running ones so far.
MATCH (source:Dataset)-[f:FEEDS]->(target:Dataset)
WHERE $runs IS NULL OR f.run IN $runs
MATCH (run:Run {id: f.run})
RETURN source.name AS source, target.name AS target, f.dic AS dic, count(f) AS runs, sum(f.edges) AS edges,
       collect(DISTINCT run.verdict) AS verdicts, max(coalesce(run.told_at, run.merged_at)) AS merged_at,
       max(run:Live) AS live
ORDER BY source, target, dic
