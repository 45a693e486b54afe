// All that is not a record: runs whose graph was visible at this change, or is pruned, and what there are few of.
MATCH (node:Run|Dataset|Version|LakeGraph)
WHERE NOT node:Run OR (node.dic IS NOT NULL AND coalesce(node.change, 0) <= $changes)
RETURN labels(node) AS labels, properties(node) AS properties
