// The same as merge_batch, where the server has our procedure, which makes the edges quicker than it interprets Cypher.
CALL () {
  UNWIND range(0, size($records) - 1) AS i
  MERGE (record:Record {id: $records[i]})
    ON CREATE SET record.dataset = $datasets[$dataset_of[i]],
      record.pruned_inputs = $pruned_inputs[$version_of[i]], record.pruned_outputs = $pruned_outputs[$version_of[i]]
  RETURN collect(record) AS records
}
CALL headwater.derive(records, $outputs, $inputs, $run, $revision) YIELD relationships
CREATE (:Batch {run: $run, revision: $revision, relationships: relationships})
WITH *
MATCH (run:Run {id: $run})
SET run.staged_edges = $end
