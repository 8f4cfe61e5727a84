INSERT INTO events (position, stream_id, version, recorded_at, schema, event_id, correlation, causation, type, blob, data)
SELECT e.position, e.stream_id, e.version, $1, e.schema, e.event_id, e.correlation, e.causation, e.type, e.digest, e.content
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bytea[], $9::text[], $10::bytea[], $11::bytea[])
    AS e (position, stream_id, version, schema, event_id, correlation, causation, type, digest, content)
