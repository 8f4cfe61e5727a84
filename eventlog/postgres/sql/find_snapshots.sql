SELECT stream, version, fingerprint, data FROM snapshots WHERE stream = ANY($1::text[])
