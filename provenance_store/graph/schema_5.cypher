// How far each bucket of a running stream query has been taken in; a bucket has one place, whoever follows it.
CREATE CONSTRAINT live_progress IF NOT EXISTS
FOR (progress:LiveProgress) REQUIRE (progress.run, progress.bucket) IS UNIQUE;
CALL db.awaitIndexes(300);
