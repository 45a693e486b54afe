// The ends of the derivations of a batch on which this prune is not noted yet.
MATCH (batch:Batch {run: $run, revision: $revision})
WHERE coalesce(batch.noted, 0) <> $number
WITH batch
LIMIT 1
CALL (batch) {
  UNWIND batch.relationships AS relationship
  MATCH (output:Record)-[e:WAS_DERIVED_FROM]->(input:Record)
  WHERE id(e) = relationship AND e.run = batch.run AND e.revision = batch.revision
  RETURN collect(DISTINCT output.id) AS outputs, collect(DISTINCT input.id) AS inputs
}
RETURN id(batch) AS batch, size(batch.relationships) AS edges, outputs, inputs
