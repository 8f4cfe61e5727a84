SELECT projection, position, stream, version, error, parked_at FROM parked :where ORDER BY id
