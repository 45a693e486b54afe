// The lake from above: which dataset feeds which, through which run and DIC, by how many derivations.
UNWIND $feeds AS row
MERGE (source:Dataset {name: row[0]})
MERGE (target:Dataset {name: row[1]})
MERGE (source)-[f:FEEDS {run: $run}]->(target)
SET f.dic = $dic, f.edges = row[2]
