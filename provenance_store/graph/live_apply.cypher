// Writes what messages of one bucket tell: records first, each looked up once, then which are live, the edges between
// them, and which no longer are. The caller holds the bucket's lock, and knows that none of this is there.
CALL () {
  UNWIND range(0, size($records) - 1) AS i
  MERGE (record:Record {id: $records[i]})
    ON CREATE SET record.dataset = $datasets[i],
      record.pruned_inputs = $pruned_inputs[$version_of[i]], record.pruned_outputs = $pruned_outputs[$version_of[i]]
  RETURN collect(record) AS records
}
CALL (records) {
  MATCH (run:Run {id: $run})
  UNWIND range(0, size($sources) - 1) AS i
  WITH run, records[$sources[i]] AS record, $times[i] AS time
  CREATE (record)-[:LIVE_IN {run: $run, bucket: $bucket, time: time}]->(run)
}
CALL (records) {
  UNWIND range(0, size($outputs) - 1) AS i
  WITH records[$outputs[i]] AS output, records[$inputs[i]] AS input
  CREATE (output)-[e:WAS_DERIVED_FROM {run: $run, revision: $revision}]->(input)
  RETURN collect(id(e)) AS relationships
}
CALL () {
  UNWIND $expired AS id
  MATCH (:Record {id: id})-[live:LIVE_IN]->()
  WHERE live.run = $run AND live.bucket = $bucket
  DELETE live
}
FOREACH (_ IN CASE WHEN size(relationships) + size($loose) > 0 THEN [1] ELSE [] END |
  CREATE (:Batch {run: $run, revision: $revision, relationships: relationships, loose: $loose}))
