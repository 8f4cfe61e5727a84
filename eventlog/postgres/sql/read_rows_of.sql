-- The stream is given back as its place in the list. A limit of NULL is none.
SELECT w.place, e.version, e.type, e.schema, e.data, e.event_id, e.recorded_at
FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w (name, after, place)
JOIN streams s ON s.name = w.name
CROSS JOIN LATERAL (
    SELECT version, type, schema, data, event_id, recorded_at FROM events WHERE stream_id = s.id AND version > w.after ORDER BY version LIMIT $3
) e
