INSERT INTO snapshots (stream, version, fingerprint, data) VALUES ($1, $2, $3, $4)
ON CONFLICT (stream) DO UPDATE SET version = excluded.version, fingerprint = excluded.fingerprint, data = excluded.data
WHERE snapshots.fingerprint <> excluded.fingerprint OR snapshots.version <= excluded.version
