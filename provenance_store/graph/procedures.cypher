// What the server has of ours, beside its own.
SHOW PROCEDURES YIELD name
WHERE name STARTS WITH 'headwater.'
RETURN name
