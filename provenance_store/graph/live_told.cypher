// Of records, in which running queries they are live, with their event times, and of which they were a part before.
UNWIND $ids AS id
MATCH (record:Record {id: id})
CALL (record) {
  MATCH (record)-[live:LIVE_IN]->()
  WHERE live.run IN $runs
  RETURN live.run AS run, live.time AS time, true AS is_live
  UNION
  MATCH (record)-[e:WAS_DERIVED_FROM]-()
  WHERE e.run IN $runs
  RETURN DISTINCT e.run AS run, null AS time, false AS is_live
}
RETURN id, run, max(time) AS time, max(is_live) AS is_live
