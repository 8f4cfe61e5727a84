SELECT position, ?, version, event_id, type, schema, data, recorded_at, correlation, causation
FROM events WHERE stream_id = ? AND version > ? AND version <= ? ORDER BY version DESC
