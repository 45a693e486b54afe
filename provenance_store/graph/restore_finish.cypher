// The one step in which the restored graph becomes visible. The counts only ever grow: readers compare them.
MATCH (lake:LakeGraph {id: 'lake'})
WITH lake, coalesce(lake.changes, 0) AS changes, coalesce(lake.replacements, 0) AS replacements
SET lake = $lake
SET lake.schema = $schema,
    lake.changes = CASE WHEN changes > coalesce(lake.changes, 0) THEN changes ELSE coalesce(lake.changes, 0) END + 1,
    lake.replacements = replacements + coalesce(lake.replacements, 0) + 1
