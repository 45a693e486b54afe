// What counts the changes of the lake graph, whether jobs that were only declared are in it, how often it was pruned, and
// how many edges running queries have told.
OPTIONAL MATCH (lake:LakeGraph {id: 'lake'})
CALL () {
  MATCH (run:Live)
  RETURN sum(run.edges) AS live
}
RETURN coalesce(lake.schema, 0) AS schema, coalesce(lake.changes, 0) AS changes,
       coalesce(lake.replacements, 0) AS replacements, EXISTS { MATCH (:Declared) } AS declared,
       coalesce(lake.pruned, 0) AS pruned, live
