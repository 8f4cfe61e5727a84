SELECT projection, position, stream, version, error, parked_at FROM parked WHERE ?1 IS NULL OR projection = ?1 ORDER BY id
