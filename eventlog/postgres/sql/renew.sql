-- Locked one by one, in the order of names, as everywhere, so that nobody waits in a circle. LATERAL and a join by both columns leave the
-- planner only the primary key, whatever it believes about a table that changes all the time (see claim_due); so does `lease_until`,
-- which is there whenever `owner` is.
WITH held AS MATERIALIZED (
    SELECT h.queue, h.name
    FROM (SELECT name, token FROM unnest($2::text[], $3::bigint[]) AS u (name, token) ORDER BY name COLLATE "C") c
    CROSS JOIN LATERAL (
        SELECT s.queue, s.name FROM schedule s
        WHERE s.queue = $1 AND s.name = c.name AND s.token = c.token AND s.lease_until IS NOT NULL
        FOR NO KEY UPDATE
    ) h
)
UPDATE schedule s SET lease_until = $4 FROM held h WHERE s.queue = h.queue AND s.name = h.name
RETURNING s.name, s.token
