-- Rows are (stream id, version to begin after); :bound is nothing, or the condition that ends a stream's rows.
WITH wanted (stream_id, after) AS (VALUES :rows)
SELECT e.stream_id, e.version, e.type, e.schema, e.data, e.event_id, e.recorded_at
FROM wanted w CROSS JOIN events e ON e.stream_id = w.stream_id AND e.version > w.after :bound
