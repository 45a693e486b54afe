// Notes a prune on records and versions: the run was among what made $outputs, and made something from $inputs.
CALL () {
  UNWIND $outputs AS id
  MATCH (record:Record {id: id})
  SET record.pruned_inputs = [n IN coalesce(record.pruned_inputs, []) WHERE n <> $number] + $number
}
CALL () {
  UNWIND $inputs AS id
  MATCH (record:Record {id: id})
  SET record.pruned_outputs = [n IN coalesce(record.pruned_outputs, []) WHERE n <> $number] + $number
}
CALL () {
  UNWIND $versions_made AS id
  MERGE (version:Version {id: id})
  SET version.pruned_inputs = [n IN coalesce(version.pruned_inputs, []) WHERE n <> $number] + $number
}
CALL () {
  UNWIND $versions_used AS id
  MERGE (version:Version {id: id})
  SET version.pruned_outputs = [n IN coalesce(version.pruned_outputs, []) WHERE n <> $number] + $number
}
MATCH (batch:Batch)
WHERE id(batch) = $batch
SET batch.noted = $number
