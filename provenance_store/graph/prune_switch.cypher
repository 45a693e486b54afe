// The one step in which a run is pruned for its readers; no row where its graph was replaced. Taken again, it changes
// nothing.
MATCH (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
WITH run
WHERE run.pruned = $number OR (run.pruning = $number AND run.revision = $revision)
MERGE (lake:LakeGraph {id: 'lake'})
SET lake.locked = true
REMOVE lake.locked
WITH run, lake, CASE WHEN run.pruned IS NULL THEN 1 ELSE 0 END AS one
SET lake.changes = coalesce(lake.changes, 0) + one, lake.replacements = coalesce(lake.replacements, 0) + one,
    lake.pruned = coalesce(lake.pruned, 0) + one
SET run.pruned = $number, run.pruned_at = coalesce(run.pruned_at, datetime()), run.pruned_revision = $revision,
    run.unclean = run.unclean OR one = 1
REMOVE run.pruning, run.revision
RETURN true AS pruned
