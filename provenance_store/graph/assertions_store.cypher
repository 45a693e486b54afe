// Keys of one stream in one lane of a run: sequence number, timestamp and delay of each event.
UNWIND $rows AS row
MERGE (a:Assertion {run: $run, lane: $lane, stream: $stream, sequence: row[0]})
SET a.timestamp = row[1], a.delay = row[2]
