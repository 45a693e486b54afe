// The next records of a range of ids, in their order; what only a half-merged run has is not known yet.
MATCH (record:Record)
WHERE record.id >= $first AND record.id < $end
  AND (
    record.purged IS NOT NULL
    OR NOT EXISTS { (record)-[:WAS_DERIVED_FROM]-() }
    OR EXISTS {
      MATCH (record)-[e:WAS_DERIVED_FROM]-()
      MATCH (run:Run {id: e.run})
      WHERE run.revision = e.revision AND coalesce(run.change, 0) <= $changes
    }
  )
RETURN record.id AS id, record.dataset AS dataset, record.purged AS purge
ORDER BY id
LIMIT $limit
