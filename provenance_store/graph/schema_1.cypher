// Every key is unique, and every lookup that a merge or a query makes is backed by an index.
CREATE CONSTRAINT record_id IF NOT EXISTS FOR (record:Record) REQUIRE record.id IS UNIQUE;
CREATE CONSTRAINT run_id IF NOT EXISTS FOR (run:Run) REQUIRE run.id IS UNIQUE;
CREATE CONSTRAINT dataset_name IF NOT EXISTS FOR (dataset:Dataset) REQUIRE dataset.name IS UNIQUE;
CREATE CONSTRAINT lake_graph_id IF NOT EXISTS FOR (lake:LakeGraph) REQUIRE lake.id IS UNIQUE;
// How an earlier graph of a run is found again once it has been replaced.
CREATE INDEX derivation_of_run IF NOT EXISTS FOR ()-[e:WAS_DERIVED_FROM]-() ON (e.run, e.revision);
CREATE INDEX feeds_of_run IF NOT EXISTS FOR ()-[f:FEEDS]-() ON (f.run);
CALL db.awaitIndexes(300);
