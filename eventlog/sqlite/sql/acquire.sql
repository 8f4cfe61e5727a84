-- Rows are (queue, name, owner, lease_until, 1). The last parameter is now.
INSERT INTO schedule (queue, name, owner, lease_until, token) VALUES :rows
ON CONFLICT (queue, name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until, token = schedule.token + 1
WHERE schedule.owner IS NULL OR schedule.lease_until <= ?
RETURNING name, token
