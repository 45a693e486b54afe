// The numbers of the prunes that took inputs from records.
UNWIND $frontier AS near
MATCH (output:Record)
WHERE id(output) = near
UNWIND output.pruned_inputs AS number
RETURN DISTINCT number
