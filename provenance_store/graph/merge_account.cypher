// The graph is already there: only the account of its reduction may be newer.
MATCH (run:Run {id: $run, revision: $revision})
SET run += $account
