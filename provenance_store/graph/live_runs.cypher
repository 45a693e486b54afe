// The stream queries that go on, and what they have told of themselves.
MATCH (run:Live)
RETURN run.id AS run, run.dic AS query, run.revision AS revision, run.watermark AS watermark, run.reach AS reach,
       run.reads AS reads
ORDER BY run
