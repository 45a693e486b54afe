// Before the nodes: one of them may have a million.
MATCH (:Record|Dataset)-[e]->()
WITH e
LIMIT 20000
DELETE e
RETURN count(*) AS removed
