// Of ranges of ids, those in which there is a record: one look into the index for each.
UNWIND $ranges AS range
CALL (range) {
  MATCH (record:Record)
  WHERE record.id >= range[0] AND record.id < range[1]
  RETURN true AS found
  LIMIT 1
}
RETURN range[0] AS first
