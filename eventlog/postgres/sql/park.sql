INSERT INTO parked (projection, position, stream, version, error, parked_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (projection, position) DO UPDATE
SET stream = excluded.stream, version = excluded.version, error = excluded.error, parked_at = excluded.parked_at
