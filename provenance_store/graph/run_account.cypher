// What is told of one run: its account, and when its graph became visible.
MATCH (run:Run {id: $run})
WHERE run.revision IS NOT NULL OR run.pruned IS NOT NULL
RETURN run.id AS run, run.dic AS dic, CASE WHEN run.pruned IS NULL THEN run.verdict ELSE 'partial' END AS verdict,
       run.pruned IS NOT NULL AS pruned, run:Declared AS declared, coalesce(run.generation, 0) AS generation,
       coalesce(run.marks, []) AS marks, toString(coalesce(run.told_at, run.merged_at)) AS merged_at, run.edges AS edges,
       run.messages AS messages, run.duplicates AS duplicates, run.discarded AS discarded, run.rejected AS rejected,
       run.missing AS missing, run:Live AS live, run.watermark AS watermark, run.reach AS reach
