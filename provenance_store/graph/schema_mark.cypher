// `changes` counts how often what is visible changed, `replacements` how often something that was visible went.
MERGE (lake:LakeGraph {id: 'lake'})
ON CREATE SET lake.changes = 0, lake.replacements = 0
SET lake.schema = $version
