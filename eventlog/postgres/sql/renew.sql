-- Locked one by one, in the order of names, as everywhere, so that nobody waits in a circle. LATERAL and ANY leave the planner only the
-- primary key, whatever it believes about a table that changes all the time; so does `lease_until`, which is there whenever `owner` is.
WITH held AS MATERIALIZED (
    SELECT h.name
    FROM (SELECT name, token FROM unnest($2::text[], $3::bigint[]) AS u (name, token) ORDER BY name COLLATE "C") c
    CROSS JOIN LATERAL (
        SELECT s.name FROM schedule s
        WHERE s.queue = $1 AND s.name = c.name AND s.token = c.token AND s.lease_until IS NOT NULL
        FOR NO KEY UPDATE
    ) h
)
UPDATE schedule SET lease_until = $4 WHERE queue = $1 AND name = ANY(ARRAY(SELECT name FROM held))
RETURNING name, token
