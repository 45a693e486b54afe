// The lake from above grows with the run. The caller holds the run's lock.
UNWIND $feeds AS row
MERGE (source:Dataset {name: row[0]})
MERGE (target:Dataset {name: row[1]})
MERGE (source)-[f:FEEDS {run: $run}]->(target)
  ON CREATE SET f.dic = $dic, f.edges = 0
SET f.edges = f.edges + row[2]
