// The labels and types that are in use.
CALL db.labels() YIELD label
WITH label
WHERE EXISTS { MATCH (:$(label)) }
RETURN label AS kind
UNION
CALL db.relationshipTypes() YIELD relationshipType
WITH relationshipType
WHERE EXISTS { MATCH ()-[:$(relationshipType)]->() }
RETURN relationshipType AS kind
