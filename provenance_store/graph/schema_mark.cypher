// `replacements` counts how often a merge has put a new graph of a run in place of a visible one.
MERGE (lake:LakeGraph {id: 'lake'})
ON CREATE SET lake.replacements = 0
SET lake.schema = $version
