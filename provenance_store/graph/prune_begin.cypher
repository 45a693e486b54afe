// Gives the prune of this graph its number, or tells the one it was given before; no row where the graph was replaced.
MATCH (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
WITH run
WHERE run.revision = $revision
MERGE (lake:LakeGraph {id: 'lake'})
SET lake.locked = true
REMOVE lake.locked
WITH run, lake
SET lake.prunes = coalesce(lake.prunes, 0) + CASE WHEN run.pruning IS NULL THEN 1 ELSE 0 END
SET run.pruning = coalesce(run.pruning, lake.prunes)
RETURN run.pruning AS number
