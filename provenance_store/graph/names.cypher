UNWIND $numbers AS number
MATCH (record:Record)
WHERE id(record) = number
RETURN number, record.id AS id, record.dataset AS dataset
