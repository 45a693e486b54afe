// From here on questions and merges refuse the graph; a reader at work sees by `replacements` that what it read is going.
MATCH (lake:LakeGraph {id: 'lake'})
SET lake.schema = $schema, lake.restoring = $digest, lake.restored = $restored,
    lake.replacements = coalesce(lake.replacements, 0) + 1
