// The visible runs that were merged before a time, or wrote into a dataset, or both; the oldest first. Of running stream
// queries only those that have told nothing since that time, nor for a week: they were given up.
MATCH (run:Run)
WHERE run.revision IS NOT NULL AND ($before IS NULL OR coalesce(run.told_at, run.merged_at) < $before)
  AND (NOT run:Live OR ($before IS NOT NULL AND run.told_at < datetime() - duration('P7D')))
  AND ($dataset IS NULL OR EXISTS { MATCH ()-[f:FEEDS]->(:Dataset {name: $dataset}) WHERE f.run = run.id })
CALL (run) {
  MATCH (source:Dataset)-[f:FEEDS]->(target:Dataset)
  WHERE f.run = run.id
  WITH source.name AS source, target.name AS target, f.edges AS edges
  ORDER BY source, target
  RETURN collect([source, target, edges]) AS feeds
}
RETURN run.id AS run, run.dic AS dic, run.merged_at AS merged_at, run.revision AS revision, run.edges AS edges, feeds
ORDER BY merged_at, run
