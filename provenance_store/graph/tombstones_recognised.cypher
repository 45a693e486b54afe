UNWIND $fingerprints AS fingerprint
MATCH (record:Record {fingerprint: fingerprint})
WHERE record.purged IS NOT NULL
RETURN fingerprint, record.id AS id, record.purged AS purge
