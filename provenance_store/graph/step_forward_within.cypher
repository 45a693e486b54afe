// From whole versions, which a declared job read or wrote: what was made from any record in them.
UNWIND $frontier AS version
UNWIND [version + '/', version + '#'] AS prefix
MATCH (input:Record)
WHERE input.id STARTS WITH prefix
MATCH (input)<-[e:WAS_DERIVED_FROM]-(output:Record)
RETURN version AS near, output.id AS far, output.dataset AS dataset,
       e.run AS run, e.generation AS generation, e.revision AS revision
