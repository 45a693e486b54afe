UNWIND $frontier AS id
MATCH (output:Record {id: id})-[e:WAS_DERIVED_FROM]->(input:Record)
RETURN id AS near, input.id AS far, input.dataset AS dataset,
       e.run AS run, e.generation AS generation, e.revision AS revision
