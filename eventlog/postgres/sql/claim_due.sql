-- MATERIALIZED: chosen and locked once, whatever the planner makes of the rest. A name that somebody locks right now is
-- being claimed or appended to; the next look finds it. A token is never below the server's clock, see `schedule`.
-- Joined by both columns of the primary key, the queue too: of a table that nobody has counted yet the planner believes that a queue
-- holds a handful of rows, and with `queue = $1` it would read every name there is to find these.
WITH due AS MATERIALIZED (
    SELECT queue, name FROM schedule
    WHERE queue = $1 AND wake_at <= $2 AND (owner IS NULL OR lease_until <= $2) :categories
    ORDER BY wake_at LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE schedule s
SET owner = $4, lease_until = $5, token = greatest(s.token + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
FROM due d WHERE s.queue = d.queue AND s.name = d.name
RETURNING s.wake_at, s.name, s.token
