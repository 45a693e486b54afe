// The graphs that are whole at this moment: an answer follows edges of these (run, generation, revision) alone.
MATCH (run:Run)
WHERE run.generation IS NOT NULL
RETURN run.id AS run, run.generation AS generation, run.revision AS revision, run.dic AS dic, run.verdict AS verdict,
       coalesce(run.marks, []) AS marks
