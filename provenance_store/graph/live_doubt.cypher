// A message of the run was lost or made no sense, so what is known of it is not all.
MATCH (run:Live {id: $run})
SET run.verdict = 'partial'
