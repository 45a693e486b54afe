// `changes` counts how often a graph became visible, `replacements` how often it did so in place of another.
MERGE (lake:LakeGraph {id: 'lake'})
ON CREATE SET lake.changes = 0, lake.replacements = 0
SET lake.schema = $version
