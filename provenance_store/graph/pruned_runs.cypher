// The runs behind the numbers of prunes; one that was merged again has none any more.
UNWIND $numbers AS number
MATCH (run:Run {pruned: number})
WHERE ($since IS NULL OR run.merged_at >= $since) AND ($until IS NULL OR run.merged_at < $until)
RETURN number, run.id AS run, run.dic AS dic, run:Declared AS declared
