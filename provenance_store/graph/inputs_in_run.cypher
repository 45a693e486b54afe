// What outputs were made from in one graph of one run: as numbers, each once.
UNWIND $outputs AS id
MATCH (output:Record {id: id})-[e:WAS_DERIVED_FROM]->(input)
WHERE e.run = $run AND e.revision = $revision
RETURN collect(DISTINCT id(input)) AS inputs
