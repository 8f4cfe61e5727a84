INSERT INTO events (position, stream_id, version, event_id, type, schema, recorded_at, correlation, causation, data) VALUES :rows
