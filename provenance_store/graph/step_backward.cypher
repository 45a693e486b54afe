// One row for each record and each graph that it was made in, with all inputs: numbers travel faster than ids.
UNWIND $frontier AS near
MATCH (output:Record)
WHERE id(output) = near
CALL (output) {
  MATCH (output)-[e:WAS_DERIVED_FROM]->(input)
  RETURN e.run AS run, e.revision AS revision, collect(id(input)) AS far
}
RETURN near, run, revision, far
