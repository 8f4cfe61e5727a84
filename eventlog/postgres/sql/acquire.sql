-- Who is claimed or appended to at this moment is waited for, in the order of their names.
INSERT INTO schedule (queue, name, owner, lease_until, token)
SELECT $1, w.name, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM unnest($4::text[]) AS w (name)
ORDER BY w.name COLLATE "C"
ON CONFLICT (queue, name) DO UPDATE
SET owner = excluded.owner, lease_until = excluded.lease_until, token = greatest(schedule.token + 1, excluded.token)
WHERE schedule.owner IS NULL OR schedule.lease_until <= $5
RETURNING name, token
