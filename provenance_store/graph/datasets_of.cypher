UNWIND $numbers AS number
MATCH (record:Record)
WHERE id(record) = number
RETURN record.dataset AS dataset, collect(number) AS numbers
