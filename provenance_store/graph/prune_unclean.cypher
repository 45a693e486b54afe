// Pruned runs whose derivations are not all removed yet.
MATCH (run:Run)
WHERE run.pruned IS NOT NULL AND run.unclean
RETURN run.id AS run, run.pruned AS number, run.pruned_revision AS revision
