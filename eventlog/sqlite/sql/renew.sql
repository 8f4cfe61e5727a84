-- Rows are (queue, name, token).
WITH claims (queue, name, token) AS (VALUES :rows)
UPDATE schedule SET lease_until = ?
FROM claims c
WHERE schedule.queue = c.queue AND schedule.name = c.name AND schedule.token = c.token AND schedule.owner IS NOT NULL
RETURNING queue, name, token
