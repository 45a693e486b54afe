// Derivations of a graph that is no longer visible, a batch at a time or several small ones, and records that nothing
// else speaks of, but tombstones. A batch of a running query also lists the records that had no derivation yet.
// Neo4j gives the numbers of removed relationships to new ones, so a number alone proves nothing.
MATCH (batch:Batch {run: $run})
WHERE batch.revision < $revision
WITH batch, size(batch.relationships) AS edges
LIMIT 50
WITH collect(batch) AS batches, collect(edges) AS sizes
WITH [i IN range(0, size(batches) - 1)
  WHERE i = 0 OR reduce(sum = 0, size IN sizes[..i + 1] | sum + size) <= 20000 | batches[i]] AS batches,
  sizes
UNWIND range(0, size(batches) - 1) AS i
WITH batches[i] AS batch, sizes[i] AS edges
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
CALL (batch) {
  UNWIND coalesce(batch.loose, []) AS id
  MATCH (record:Record {id: id})
  WHERE NOT EXISTS { (record)--() } AND record.purged IS NULL
  DELETE record
  RETURN count(*) AS loose
}
DELETE batch
WITH count(*) AS batches, sum(edges) AS edges, sum(records) + sum(loose) AS records
WHERE batches > 0
RETURN edges, records
