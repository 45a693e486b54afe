// The write takes the lock that holds restores apart until the transaction ends.
MERGE (lake:LakeGraph {id: 'lake'})
SET lake.locked = true
REMOVE lake.locked
RETURN lake.restoring AS restoring, lake.restored AS restored,
       lake.restoring IS NULL AND NOT EXISTS { MATCH (:Run) } AND NOT EXISTS { MATCH (:Record) } AS empty
