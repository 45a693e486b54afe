// A purged record keeps its node, which says by which plan it went; one that no run spoke of gets a node for that.
UNWIND range(0, size($records) - 1) AS i
MERGE (record:Record {id: $records[i]})
  ON CREATE SET record.dataset = $datasets[i],
    record.pruned_inputs = $pruned_inputs[$version_of[i]], record.pruned_outputs = $pruned_outputs[$version_of[i]]
SET record.purged = coalesce(record.purged, $purge),
    record.fingerprint = coalesce(record.fingerprint, $fingerprints[i])
