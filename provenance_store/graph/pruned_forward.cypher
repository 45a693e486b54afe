// The numbers of the prunes that took outputs from records.
UNWIND $frontier AS near
MATCH (input:Record)
WHERE id(input) = near
UNWIND input.pruned_outputs AS number
RETURN DISTINCT number
