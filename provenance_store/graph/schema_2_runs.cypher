// What a merge of the earlier schema left half-way cannot be gone on with: it is begun anew, and cleaned away after.
MATCH (run:Run)
SET run.change = CASE WHEN run.revision IS NOT NULL THEN coalesce(run.change, 0) END
FOREACH (_ IN CASE WHEN 'declared' IN coalesce(run.marks, []) THEN [1] ELSE [] END | SET run:Declared)
FOREACH (_ IN CASE WHEN run.staged_revision IS NOT NULL AND run.staged_edges IS NULL THEN [1] ELSE [] END |
  SET run.unclean = true
  REMOVE run.staged_generation, run.staged_revision, run.staged_digest)
