// A key is there once, and a window over a stream is a range of an index.
CREATE CONSTRAINT assertion_key IF NOT EXISTS
FOR (a:Assertion) REQUIRE (a.run, a.stream, a.sequence) IS UNIQUE;
CREATE INDEX assertion_time IF NOT EXISTS FOR (a:Assertion) ON (a.run, a.stream, a.timestamp);
CALL db.awaitIndexes(300);
