// The write takes the lock that holds a bucket's messages apart until the transaction ends; no row for a new bucket.
MATCH (progress:LiveProgress {run: $run, bucket: $bucket})
SET progress.locked = true
REMOVE progress.locked
RETURN progress.step AS step, progress.part AS part, progress.revision AS revision
