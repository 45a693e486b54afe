// The first message of a bucket, and perhaps of its run, whose graph is visible from here on, and grows. No row where
// the run has had another graph, which its declared one replaced, or a prune took away: what comes later is late.
MERGE (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
WITH run
WHERE run:Live OR (run.revision IS NULL AND coalesce(run.revisions, 0) = 0)
CALL (run) {
  WITH run
  WHERE NOT run:Live
  MERGE (lake:LakeGraph {id: 'lake'})
  SET lake.locked = true
  REMOVE lake.locked
  WITH run, lake
  SET lake.changes = coalesce(lake.changes, 0) + 1
  SET run:Live, run.live = true, run.dic = $dic, run.verdict = 'unknown', run.revision = 1, run.revisions = 1,
      run.change = lake.changes, run.merged_at = datetime(), run.edges = 0, run.messages = 0, run.reads = []
}
CREATE (progress:LiveProgress {run: $run, bucket: $bucket, step: -1, part: -1, revision: run.revision})
RETURN progress.step AS step, progress.part AS part, progress.revision AS revision
