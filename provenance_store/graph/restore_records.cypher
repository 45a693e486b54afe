// Tombstones of records that no run spoke of have no derivation with which they came.
UNWIND $rows AS row
FOREACH (_ IN CASE WHEN row[1].purged IS NOT NULL THEN [1] ELSE [] END | MERGE (:Record {id: row[0]}))
WITH row
MATCH (record:Record {id: row[0]})
SET record = row[1]
