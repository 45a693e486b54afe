// Which node each id has, and whether a visible run speaks of it, or a purge; what only a half-merged run has is not known yet.
UNWIND $ids AS name
OPTIONAL MATCH (record:Record {id: name})
RETURN name, id(record) AS number, record IS NOT NULL AND (
  record.purged IS NOT NULL
  OR NOT EXISTS { (record)-[:WAS_DERIVED_FROM]-() }
  OR EXISTS {
    MATCH (record)-[e:WAS_DERIVED_FROM]-()
    MATCH (run:Run {id: e.run})
    WHERE run.revision = e.revision AND coalesce(run.change, 0) <= $changes
  }
) AS known
