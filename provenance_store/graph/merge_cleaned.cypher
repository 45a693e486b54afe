MATCH (run:Run {id: $run, revision: $revision})
REMOVE run.unclean
