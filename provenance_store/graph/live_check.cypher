// What of a message cannot be: sources told although they are, and ends of edges that were not told or have expired.
CALL () {
  UNWIND $sources AS id
  MATCH (:Record {id: id})-[live:LIVE_IN]->()
  WHERE live.run = $run AND live.bucket = $bucket
  RETURN collect(id)[0] AS twice
}
CALL () {
  UNWIND $inputs AS id
  WITH id
  WHERE NOT EXISTS {
    MATCH (:Record {id: id})-[live:LIVE_IN]->()
    WHERE live.run = $run AND live.bucket = $bucket
  }
  RETURN collect(id)[0] AS untold_input
}
CALL () {
  UNWIND $outputs AS id
  WITH id
  WHERE NOT EXISTS { (:Record {id: id}) }
  RETURN collect(id)[0] AS untold_output
}
RETURN twice, untold_input, untold_output
