UNWIND $frontier AS id
MATCH (input:Record {id: id})<-[e:WAS_DERIVED_FROM]-(output:Record)
RETURN id AS near, output.id AS far, output.dataset AS dataset,
       e.run AS run, e.generation AS generation, e.revision AS revision
