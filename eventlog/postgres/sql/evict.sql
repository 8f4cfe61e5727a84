-- Locked in the order of (queue, name), as everywhere, so that nobody waits in a circle.
WITH held AS MATERIALIZED (
    SELECT queue FROM schedule WHERE owner = $1 ORDER BY queue, name FOR NO KEY UPDATE
)
UPDATE schedule SET owner = NULL, lease_until = NULL
WHERE (SELECT count(*) FROM held) > 0 AND owner = $1
