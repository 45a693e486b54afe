// The graph is already there: only the account of its reduction may be newer.
MATCH (run:Run {id: $run, revision: $revision})
SET run += $account
REMOVE run:Declared
FOREACH (_ IN CASE WHEN 'declared' IN coalesce(run.marks, []) THEN [1] ELSE [] END | SET run:Declared)
