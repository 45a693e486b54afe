// Derivations of graphs that are no longer visible, some at a time, and records that nothing else speaks of.
MATCH (output:Record)-[e:WAS_DERIVED_FROM]->(input:Record)
WHERE e.run = $run AND e.revision < $revision
WITH output, e, input
LIMIT $limit
DELETE e
WITH collect(output) + collect(input) AS ends
UNWIND ends AS record
WITH DISTINCT record
WHERE NOT EXISTS { (record)--() }
DELETE record
