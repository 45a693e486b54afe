// Which records were live in a run that no longer is.
MATCH (:Record)-[live:LIVE_IN]->(run:Run {id: $run})
WHERE NOT run:Live
WITH live
LIMIT 20000
DELETE live
RETURN count(*) AS removed
