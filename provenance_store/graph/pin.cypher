// Of the runs, those whose graph was visible at this change: an answer follows edges of these (run, revision) alone.
UNWIND $runs AS id
MATCH (run:Run {id: id})
WHERE run.revision IS NOT NULL AND coalesce(run.change, 0) <= $changes
  AND ($since IS NULL OR run.merged_at >= $since) AND ($until IS NULL OR run.merged_at < $until)
RETURN run.id AS run, run.revision AS revision, run.dic AS dic, run.verdict AS verdict, run:Declared AS declared,
       'stream' IN coalesce(run.marks, []) AS stream, run:Live AS live
