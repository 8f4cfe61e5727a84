-- Locked in the order of (queue, name), as everywhere, so that nobody waits in a circle.
WITH held AS MATERIALIZED (
    SELECT queue, name FROM schedule WHERE owner = $1 ORDER BY queue, name FOR NO KEY UPDATE
)
UPDATE schedule s SET owner = NULL, lease_until = NULL
FROM held h
WHERE s.queue = h.queue AND s.name = h.name AND s.owner = $1
