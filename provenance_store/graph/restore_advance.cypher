MATCH (lake:LakeGraph {id: 'lake'})
SET lake.restored = $restored
