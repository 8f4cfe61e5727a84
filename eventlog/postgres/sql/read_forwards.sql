SELECT position, $1::text, version, event_id, type, schema, data, recorded_at, correlation, causation
FROM events
WHERE stream_id = (SELECT id FROM streams WHERE name = $1) AND version > $2 AND version <= $3
ORDER BY version LIMIT $4
