// How far the bucket has come, and the run: its watermark is the least of its buckets. Last in its transaction, because
// the run's lock, which all its buckets share, is taken here.
MATCH (own:LiveProgress {run: $run, bucket: $bucket})
SET own.step = $step, own.part = $part, own.watermark = $watermark
WITH own
MATCH (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
WITH run
CALL () {
  MATCH (progress:LiveProgress {run: $run})
  WHERE progress.bucket IS NOT NULL
  RETURN min(progress.watermark) AS watermark
}
SET run.watermark = watermark, run.reach = $reach, run.told_at = datetime(), run.edges = run.edges + $edges,
    run.messages = run.messages + $messages,
    run.reads = run.reads + [version IN $reads WHERE NOT version IN run.reads]
