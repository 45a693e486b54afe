// Which of these are purged, by which plan, and whether the node holds anything else than a tombstone may.
UNWIND $records AS id
MATCH (record:Record {id: id})
WHERE record.purged IS NOT NULL
RETURN id, record.purged AS purge,
       all(name IN keys(record) WHERE name IN
         ['id', 'dataset', 'purged', 'fingerprint', 'pruned_inputs', 'pruned_outputs']) AS bare
