// From whole versions, which a declared job read or wrote: what any record in them was made from.
UNWIND $versions AS version
UNWIND [version[1] + '/', version[1] + '#'] AS prefix
MATCH (output:Record)
WHERE output.id STARTS WITH prefix
CALL (output) {
  MATCH (output)-[e:WAS_DERIVED_FROM]->(input)
  RETURN e.run AS run, e.revision AS revision, collect(id(input)) AS far
}
RETURN version[0] AS near, run, revision, far
