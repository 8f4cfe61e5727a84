SELECT e.position, s.name, e.version, e.event_id, e.type, e.schema, e.data, e.recorded_at, e.correlation, e.causation
FROM events e CROSS JOIN streams s ON s.id = e.stream_id
WHERE e.position > ? AND e.position <= ? :filters
ORDER BY e.position
