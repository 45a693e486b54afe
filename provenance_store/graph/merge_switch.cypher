// The one step in which a run's new graph becomes the visible one. The caller holds the run's lock.
MATCH (run:Run {id: $run})
WHERE coalesce(run.staged_revision, run.revision) = $revision
MERGE (lake:LakeGraph {id: 'lake'})
WITH run, lake, run.revision IS NOT NULL AND run.revision <> $revision AS replaces
// A reader that began before this notices by the count that what it reads may be on its way out.
FOREACH (_ IN CASE WHEN replaces THEN [1] ELSE [] END |
  SET lake.replacements = coalesce(lake.replacements, 0) + 1)
SET run += $account
SET run.generation = $generation, run.revision = $revision, run.digest = $digest, run.edges = $edges,
    run.merged_at = datetime(), run.unclean = $revision > 1
REMOVE run.staged_generation, run.staged_revision, run.staged_digest
RETURN replaces
