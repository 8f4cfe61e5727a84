-- See renew.
WITH held AS MATERIALIZED (
    SELECT h.queue, h.name
    FROM (SELECT name, token FROM unnest($2::text[], $3::bigint[]) AS u (name, token) ORDER BY name COLLATE "C") c
    CROSS JOIN LATERAL (
        SELECT s.queue, s.name FROM schedule s
        WHERE s.queue = $1 AND s.name = c.name AND s.token = c.token AND s.lease_until IS NOT NULL
        FOR NO KEY UPDATE
    ) h
)
UPDATE schedule s SET owner = NULL, lease_until = NULL :wake FROM held h WHERE s.queue = h.queue AND s.name = h.name
