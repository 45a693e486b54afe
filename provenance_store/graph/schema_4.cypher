// By its fingerprint a purged record is recognised where it comes back.
CREATE INDEX purged_fingerprint IF NOT EXISTS FOR (record:Record) ON (record.fingerprint);
CALL db.awaitIndexes(300);
