MATCH (node:Record|Batch|Run|Dataset|Version|Assertion)
WITH node
LIMIT 20000
DELETE node
RETURN count(*) AS removed
