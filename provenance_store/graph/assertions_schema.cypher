// A key is there once, and a window over a stream is a range of an index.
DROP CONSTRAINT assertion_key IF EXISTS;
CREATE CONSTRAINT assertion_of_lane IF NOT EXISTS
FOR (a:Assertion) REQUIRE (a.run, a.lane, a.stream, a.sequence) IS UNIQUE;
CREATE INDEX assertion_time IF NOT EXISTS FOR (a:Assertion) ON (a.run, a.stream, a.timestamp);
CALL db.awaitIndexes(300);
