// What was pruned is noted on versions, by numbers that lead to the runs.
CREATE CONSTRAINT version_id IF NOT EXISTS FOR (version:Version) REQUIRE version.id IS UNIQUE;
CREATE INDEX pruned_run IF NOT EXISTS FOR (run:Run) ON (run.pruned);
CALL db.awaitIndexes(300);
