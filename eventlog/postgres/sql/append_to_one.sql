-- What append_events does, for events that go to one stream at its head and move nothing: most appends that are made one by one. The
-- argument for the order of the log (002_append) holds within one statement, too: what it sees was decided before it asks for its id, and
-- it asks only when the head is the expected one. No row: it is not.
WITH place AS MATERIALIZED (
    SELECT s.id, (pg_current_xact_id()::text::bigint + (SELECT xid_offset FROM meta)) << 20 AS base
    FROM streams s
    WHERE s.name = $2 AND $3 = (SELECT e.version FROM events e WHERE e.stream_id = s.id ORDER BY e.version DESC LIMIT 1)
), written AS (
    INSERT INTO events (position, stream_id, version, recorded_at, schema, event_id, correlation, causation, type, data)
    SELECT p.base + e.step, p.id, $3 + e.step, $1, e.schema, e.event_id, e.correlation, e.causation, e.type, e.content
    FROM place p CROSS JOIN unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bytea[], $9::text[], $10::bytea[])
        AS e (step, schema, event_id, correlation, causation, type, content)
)
SELECT base, ARRAY[$3::bigint] FROM place
