// From whole versions, which a declared job read or wrote: what any record in them was made from.
UNWIND $frontier AS version
UNWIND [version + '/', version + '#'] AS prefix
MATCH (output:Record)
WHERE output.id STARTS WITH prefix
MATCH (output)-[e:WAS_DERIVED_FROM]->(input:Record)
RETURN version AS near, input.id AS far, input.dataset AS dataset,
       e.run AS run, e.generation AS generation, e.revision AS revision
