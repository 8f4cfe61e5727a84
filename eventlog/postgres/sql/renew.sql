-- Locked in the order of (queue, name), as everywhere, so that nobody waits in a circle.
WITH held AS MATERIALIZED (
    SELECT s.queue, s.name, s.token
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS c (queue, name, token)
    JOIN schedule s ON s.queue = c.queue AND s.name = c.name AND s.token = c.token
    WHERE s.owner IS NOT NULL
    ORDER BY s.queue, s.name
    FOR NO KEY UPDATE OF s
)
UPDATE schedule s SET lease_until = $4
FROM held h
WHERE s.queue = h.queue AND s.name = h.name AND s.token = h.token AND s.owner IS NOT NULL
RETURNING s.queue, s.name, s.token
