MATCH (record:Record)
WHERE record.id >= $first AND record.id < $end
RETURN record.id AS id
ORDER BY id
LIMIT 1
