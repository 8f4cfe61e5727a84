-- Where events with these ids stand; rows are (event id, stream id).
WITH wanted (event_id, stream_id) AS (VALUES :rows)
SELECT e.stream_id, e.event_id, e.version, e.position, e.type, e.schema, e.data
FROM wanted w CROSS JOIN events e ON e.event_id = w.event_id AND e.stream_id = w.stream_id
