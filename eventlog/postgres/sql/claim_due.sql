-- MATERIALIZED: chosen and locked once, whatever the planner makes of the rest. A name that somebody locks right now is
-- being claimed or appended to; the next look finds it. A token is never below the server's clock, see `schedule`.
WITH due AS MATERIALIZED (
    SELECT name FROM schedule
    WHERE queue = $1 AND wake_at <= $2 AND (owner IS NULL OR lease_until <= $2) :categories
    ORDER BY wake_at LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE schedule
SET owner = $4, lease_until = $5, token = greatest(token + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
WHERE queue = $1 AND name = ANY(ARRAY(SELECT name FROM due))
RETURNING wake_at, name, token
