// Records first, each looked up once, then the edges between them, and for each run that made some a batch.
CALL () {
  UNWIND range(0, size($records) - 1) AS i
  MERGE (record:Record {id: $records[i]})
    ON CREATE SET record.dataset = $datasets[i]
  RETURN collect(record) AS records
}
CALL (records) {
  UNWIND range(0, size($outputs) - 1) AS i
  WITH records[$outputs[i]] AS output, records[$inputs[i]] AS input, $runs[$run_of[i]] AS run
  CREATE (output)-[e:WAS_DERIVED_FROM {run: run[0], revision: run[1]}]->(input)
  WITH run, collect(id(e)) AS relationships
  CREATE (:Batch {run: run[0], revision: run[1], relationships: relationships})
}
