// The write takes the lock that holds a bucket's messages apart until the transaction ends; no row for a new bucket, nor
// for one that was deleted while this waited, as its run was replaced.
MATCH (progress:LiveProgress {run: $run, bucket: $bucket})
SET progress.locked = true
REMOVE progress.locked
WITH progress
WHERE progress.step IS NOT NULL
RETURN progress.step AS step, progress.part AS part, progress.revision AS revision
