// One row for each record and each graph that it was used in, with all outputs: numbers travel faster than ids.
UNWIND $frontier AS near
MATCH (input:Record)
WHERE id(input) = near
CALL (input) {
  MATCH (input)<-[e:WAS_DERIVED_FROM]-(output)
  RETURN e.run AS run, e.revision AS revision, collect(id(output)) AS far
}
RETURN near, run, revision, far
