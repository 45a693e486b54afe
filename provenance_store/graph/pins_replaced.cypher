// How many of the pinned graphs are no longer the visible ones.
UNWIND $pins AS pin
OPTIONAL MATCH (run:Run {id: pin[0]})
WITH pin, run
WHERE coalesce(run.revision, 0) <> pin[1]
RETURN count(*) AS replaced
