-- Rows are (queue, name, token). The last parameter is the new wake-up.
WITH claims (queue, name, token) AS (VALUES :rows)
UPDATE schedule SET owner = NULL, lease_until = NULL, wake_at = ?
FROM claims c
WHERE schedule.queue = c.queue AND schedule.name = c.name AND schedule.token = c.token AND schedule.owner IS NOT NULL
