// A page of records in the order of their ids: one row for each record and each graph that it was made in.
MATCH (output:Record)
WHERE output.id > $after
WITH output
ORDER BY output.id
LIMIT $page
CALL (output) {
  OPTIONAL MATCH (output)-[e:WAS_DERIVED_FROM]->(input)
  RETURN e.run AS run, e.revision AS revision, collect(input.id) AS inputs
}
RETURN output.id AS id, properties(output) AS properties, run, revision, inputs
ORDER BY id
