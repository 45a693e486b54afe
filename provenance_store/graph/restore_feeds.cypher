UNWIND $rows AS row
MATCH (source:Dataset {name: row[0]}), (target:Dataset {name: row[1]})
CREATE (source)-[f:FEEDS]->(target)
SET f = row[2]
