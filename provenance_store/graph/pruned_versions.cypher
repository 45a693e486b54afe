UNWIND $versions AS id
MATCH (version:Version {id: id})
RETURN id, coalesce(version.pruned_inputs, []) AS inputs, coalesce(version.pruned_outputs, []) AS outputs
