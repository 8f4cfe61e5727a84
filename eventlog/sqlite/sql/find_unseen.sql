-- Rows that `read_forwards` gives for no stream that `list_streams` gives.
SELECT
    e.position, CASE typeof(s.name) WHEN 'text' THEN s.name ELSE '(' || quote(e.stream_id) || ')' END,
    e.version, e.event_id, e.type, e.schema, e.data, e.recorded_at, e.correlation, e.causation
FROM events e LEFT JOIN streams s ON s.id = e.stream_id
WHERE e.position > ?1 AND e.position <= ?2
    AND (s.id IS NULL OR typeof(s.name) <> 'text' OR NOT (e.version > -1 AND e.version <= 9223372036854775807))
ORDER BY e.position
