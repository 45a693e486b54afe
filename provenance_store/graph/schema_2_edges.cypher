MATCH ()-[e:WAS_DERIVED_FROM]->()
WHERE e.run = $run
RETURN e.revision AS revision, id(e) AS relationship
