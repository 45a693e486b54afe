// What counts the changes of the lake graph, and whether jobs that were only declared are in it.
OPTIONAL MATCH (lake:LakeGraph {id: 'lake'})
RETURN coalesce(lake.schema, 0) AS schema, coalesce(lake.changes, 0) AS changes,
       coalesce(lake.replacements, 0) AS replacements, EXISTS { MATCH (:Declared) } AS declared
