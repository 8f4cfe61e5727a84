-- Rows that `read_forwards` gives for no stream that `list_streams` gives.
SELECT
    e.position, coalesce(s.name, '(' || e.stream_id || ')'), e.version, e.event_id, e.type, e.schema,
    coalesce((SELECT b.data FROM blobs b WHERE b.digest = e.blob LIMIT 1), e.data), e.recorded_at, e.correlation, e.causation
FROM events e LEFT JOIN streams s ON s.id = e.stream_id
WHERE e.position > $1 AND e.position <= $2 AND (s.id IS NULL OR e.version < 0)
ORDER BY e.position
