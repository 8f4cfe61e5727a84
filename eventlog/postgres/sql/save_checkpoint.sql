INSERT INTO checkpoints (name, position) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE excluded.position > checkpoints.position
