OPTIONAL MATCH (lake:LakeGraph {id: 'lake'})
RETURN coalesce(lake.replacements, 0) AS replacements
