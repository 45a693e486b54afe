// One row per output with its inputs; a merge that another one has overtaken matches no run and writes nothing.
// The lock on the run holds two merges of it apart, so that looking for an edge and creating it is one step.
MATCH (run:Run {id: $run})
SET run.locked = true
REMOVE run.locked
WITH run
WHERE coalesce(run.staged_revision, run.revision) = $revision
CALL () {
  UNWIND $rows AS row
  MERGE (output:Record {id: row[0]})
    ON CREATE SET output.dataset = row[1]
  WITH output, row
  UNWIND row[2] AS pair
  MERGE (input:Record {id: pair[0]})
    ON CREATE SET input.dataset = pair[1]
  WITH output, input
  // Compared as one list, which no index answers: MERGE on these properties would go through the index of the whole run
  // for every edge, as long as the planner takes the graph for a small one.
  WHERE NOT EXISTS {
    MATCH (output)-[e:WAS_DERIVED_FROM]->(input)
    WHERE [e.run, e.generation, e.revision] = [$run, $generation, $revision]
  }
  CREATE (output)-[:WAS_DERIVED_FROM {run: $run, generation: $generation, revision: $revision}]->(input)
  RETURN count(*) AS created
}
RETURN created
