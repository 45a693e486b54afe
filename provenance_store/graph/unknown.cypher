// Of the ids, those that no visible run speaks of; a record that only a half-merged run has is not known yet.
UNWIND $ids AS id
OPTIONAL MATCH (record:Record {id: id})
WITH id, record
WHERE record IS NULL OR (
  EXISTS { (record)-[:WAS_DERIVED_FROM]-() }
  AND NOT EXISTS {
    MATCH (record)-[e:WAS_DERIVED_FROM]-()
    MATCH (run:Run {id: e.run})
    WHERE run.generation = e.generation AND run.revision = e.revision
  }
)
RETURN id
