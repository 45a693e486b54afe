MATCH (node:Record|Batch|Run|Dataset|Version|Assertion|LiveProgress)
WITH node
LIMIT 20000
DELETE node
RETURN count(*) AS removed
