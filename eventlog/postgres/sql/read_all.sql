SELECT e.position, s.name, e.version, e.event_id, e.type, e.schema, e.data, e.recorded_at, e.correlation, e.causation
FROM (SELECT * FROM events WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) e
JOIN streams s ON s.id = e.stream_id
ORDER BY e.position
