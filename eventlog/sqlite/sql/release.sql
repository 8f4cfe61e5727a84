-- Rows are (queue, name, token).
WITH claims (queue, name, token) AS (VALUES :rows)
UPDATE schedule SET owner = NULL, lease_until = NULL
FROM claims c
WHERE schedule.queue = c.queue AND schedule.name = c.name AND schedule.token = c.token AND schedule.owner IS NOT NULL
