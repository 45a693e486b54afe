// The one step in which a run's new graph becomes the visible one. The caller holds the run's lock.
MATCH (run:Run {id: $run})
WHERE run.staged_revision = $revision AND run.staged_edges = $edges
MERGE (lake:LakeGraph {id: 'lake'})
SET lake.locked = true
REMOVE lake.locked
WITH run, lake, run.revision IS NOT NULL AS replaces
// A reader that began before this tells by these counts which graphs were visible then, and that one is on its way out,
// or that what it took for pruned is back.
SET lake.changes = coalesce(lake.changes, 0) + 1,
    lake.replacements = coalesce(lake.replacements, 0) + CASE WHEN replaces OR run.pruned IS NOT NULL THEN 1 ELSE 0 END
SET run += $account
SET run.generation = $generation, run.revision = $revision, run.digest = $digest, run.edges = $edges,
    run.change = lake.changes, run.merged_at = datetime(), run.unclean = $revision > 1
REMOVE run.staged_generation, run.staged_revision, run.staged_digest, run.staged_edges, run:Declared,
       run.pruning, run.pruned, run.pruned_at, run.pruned_revision
FOREACH (_ IN CASE WHEN 'declared' IN coalesce(run.marks, []) THEN [1] ELSE [] END | SET run:Declared)
RETURN replaces
