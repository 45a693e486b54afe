MATCH (run:Run {id: $run, pruned: $number})
REMOVE run.unclean
