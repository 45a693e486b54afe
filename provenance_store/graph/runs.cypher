// Every run with a visible graph, and those that were pruned, which have none.
MATCH (run:Run)
WHERE (run.revision IS NOT NULL AND coalesce(run.change, 0) <= $changes) OR run.pruned IS NOT NULL
RETURN run.id AS run, run.dic AS dic, run.verdict AS verdict, coalesce(run.generation, 0) AS generation,
       run.revision AS revision, run:Declared AS declared, coalesce(run.marks, []) AS marks, run:Live AS live
ORDER BY run
