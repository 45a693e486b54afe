// How many records there are in ranges of ids, up to a number at which counting stops.
UNWIND $ranges AS range
CALL (range) {
  MATCH (record:Record)
  WHERE record.id >= range[0] AND record.id < range[1]
    AND (
      record.purged IS NOT NULL
      OR NOT EXISTS { (record)-[:WAS_DERIVED_FROM]-() }
      OR EXISTS {
        MATCH (record)-[e:WAS_DERIVED_FROM]-()
        MATCH (run:Run {id: e.run})
        WHERE run.revision = e.revision AND coalesce(run.change, 0) <= $changes
      }
    )
  WITH record
  LIMIT $most
  RETURN count(record) AS records
}
RETURN range[0] AS first, records
