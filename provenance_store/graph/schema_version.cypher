// 0 where there is no lake graph yet.
OPTIONAL MATCH (lake:LakeGraph {id: 'lake'})
RETURN coalesce(lake.schema, 0) AS version
