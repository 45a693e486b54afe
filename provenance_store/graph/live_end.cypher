// From here on no message of the run is taken in; what was live is cleared after it. Waits for those under way.
CALL () {
  MATCH (progress:LiveProgress {run: $run})
  WHERE progress.bucket IS NOT NULL
  DELETE progress
}
MATCH (run:Live {id: $run})
REMOVE run:Live, run.live, run.watermark, run.reach, run.reads, run.told_at
