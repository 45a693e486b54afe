// Derivations of a graph that is no longer visible, a batch at a time, and records that nothing else speaks of, but tombstones.
// Neo4j gives the numbers of removed relationships to new ones, so a number alone proves nothing.
MATCH (batch:Batch {run: $run})
WHERE batch.revision < $revision
WITH batch, size(batch.relationships) AS edges
LIMIT 1
CALL (batch) {
  UNWIND batch.relationships AS number
  MATCH (output:Record)-[e:WAS_DERIVED_FROM]->(input:Record)
  WHERE id(e) = number AND e.run = batch.run AND e.revision = batch.revision
  DELETE e
  WITH collect(output) + collect(input) AS ends
  UNWIND ends AS record
  WITH DISTINCT record
  WHERE NOT EXISTS { (record)--() } AND record.purged IS NULL
  DELETE record
  RETURN count(*) AS records
}
DELETE batch
RETURN edges, records
