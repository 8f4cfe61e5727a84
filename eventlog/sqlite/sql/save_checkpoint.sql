INSERT INTO checkpoints (name, position) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE excluded.position > checkpoints.position
