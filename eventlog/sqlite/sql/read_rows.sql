SELECT version, type, schema, data, event_id, recorded_at
FROM events WHERE stream_id = ? AND version > ? AND version <= ? ORDER BY version
