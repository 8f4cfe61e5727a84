-- Where events with these ids stand.
SELECT e.stream_id, e.event_id, e.version, e.position, e.type, e.schema, e.data, e.blob
FROM unnest($1::bytea[], $2::bigint[]) AS w (event_id, stream_id) JOIN events e ON e.event_id = w.event_id AND e.stream_id = w.stream_id
