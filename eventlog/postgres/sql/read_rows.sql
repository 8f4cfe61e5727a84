SELECT version, type, schema, data, event_id, recorded_at
FROM events
WHERE stream_id = (SELECT id FROM streams WHERE name = $1) AND version > $2 AND version <= $3
ORDER BY version LIMIT $4
