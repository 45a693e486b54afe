// Keys of a run that are no longer true, so many at a time.
MATCH (a:Assertion {run: $run})
WITH a LIMIT $most
DELETE a
RETURN count(*) AS forgotten
