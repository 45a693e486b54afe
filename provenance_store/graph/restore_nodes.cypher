UNWIND $rows AS row
CREATE (node:$(row[0]))
SET node = row[1]
