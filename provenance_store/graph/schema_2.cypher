// A batch lists the relationships that one transaction of a merge wrote.
CREATE INDEX batch_of_run IF NOT EXISTS FOR (batch:Batch) ON (batch.run, batch.revision);
// What it served, batches do now; it made every merge dear.
DROP INDEX derivation_of_run IF EXISTS;
CALL db.awaitIndexes(300);
