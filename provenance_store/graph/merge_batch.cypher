// Writes one batch, which the caller knows to be the next and not there: records first, each looked up once, then the
// edges between them. The caller holds the run's lock.
CALL () {
  UNWIND range(0, size($records) - 1) AS i
  MERGE (record:Record {id: $records[i]})
    ON CREATE SET record.dataset = $datasets[$dataset_of[i]],
      record.pruned_inputs = $pruned_inputs[$version_of[i]], record.pruned_outputs = $pruned_outputs[$version_of[i]]
  RETURN collect(record) AS records
}
CALL (records) {
  UNWIND range(0, size($outputs) - 1) AS i
  WITH records[$outputs[i]] AS output, records[$inputs[i]] AS input
  CREATE (output)-[e:WAS_DERIVED_FROM {run: $run, revision: $revision}]->(input)
  RETURN collect(id(e)) AS relationships
}
CREATE (:Batch {run: $run, revision: $revision, relationships: relationships})
WITH *
MATCH (run:Run {id: $run})
SET run.staged_edges = $end
