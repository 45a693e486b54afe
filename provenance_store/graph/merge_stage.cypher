// Announces a graph that is on its way; nobody sees it until merge_switch.
MATCH (run:Run {id: $run})
SET run.staged_generation = $generation, run.staged_revision = $revision, run.staged_digest = $digest,
    run.staged_edges = 0, run.revisions = $revision
