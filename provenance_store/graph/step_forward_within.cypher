// From whole versions, which a declared job read or wrote: what was made from any record in them.
UNWIND $versions AS version
UNWIND [version[1] + '/', version[1] + '#'] AS prefix
MATCH (input:Record)
WHERE input.id STARTS WITH prefix
CALL (input) {
  MATCH (input)<-[e:WAS_DERIVED_FROM]-(output)
  RETURN e.run AS run, e.revision AS revision, collect(id(output)) AS far
}
RETURN version[0] AS near, run, revision, far
