UNWIND $runs AS run
MATCH (source:Dataset)-[f:FEEDS {run: run}]->(target:Dataset)
RETURN source.name AS source, target.name AS target, properties(f) AS properties
