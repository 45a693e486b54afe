// The write takes the lock that holds the run's merges apart until the transaction ends.
MERGE (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
RETURN run.generation AS generation, run.revision AS revision, run.digest AS digest,
       run.staged_generation AS staged_generation, run.staged_revision AS staged_revision,
       run.staged_digest AS staged_digest, coalesce(run.staged_edges, 0) AS staged_edges,
       coalesce(run.revisions, 0) AS revisions,
       coalesce(run.unclean, false) AS unclean
