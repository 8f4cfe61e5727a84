-- For people with psql: what is recorded, in columns that can be read. Everything here reads and nothing writes; no part of the
-- program uses it. Functions find each other by the search path of the migration, whatever that of the caller is.

-- ── Payloads ─────────────────────────────────────────────────────────────────────────────────────────────────────────
-- MessagePack and the log's extension types (eventlog/wire.py), to JSON as the commands print it: bytes as {"$bytes": base64}, text that
-- JSON cannot hold here (NUL, lone surrogates) as {"$text": base64}, decimals, moments and infinities as text, lengths of time in seconds.

CREATE FUNCTION bytes_at(data bytea, at integer, size bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF at + size > octet_length(data) THEN
        RAISE EXCEPTION 'the bytes end too early' USING ERRCODE = 'data_exception';
    END IF;
    RETURN substring(data FROM at + 1 FOR size::integer);
END
$$;

-- Big-endian, up to 8 bytes; 8 bytes are signed, fewer are not.
CREATE FUNCTION whole(data bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ('x' || lpad(encode(data, 'hex'), 16, '0'))::bit(64)::bigint
$$;

CREATE FUNCTION signed(data bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN octet_length(data) < 8 AND get_byte(data, 0) > 127 THEN whole(data) - (1::bigint << (8 * octet_length(data))) ELSE whole(data) END
$$;

CREATE FUNCTION in_base64(data bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT translate(encode(data, 'base64'), E'\n', '')
$$;

CREATE FUNCTION text_value(data bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF position('\x00'::bytea IN data) > 0 THEN
        RETURN jsonb_build_object('$text', in_base64(data));
    END IF;
    RETURN to_jsonb(convert_from(data, 'UTF8'));
END
$$;

-- IEEE 754, from its bits: nothing in SQL reads them.
CREATE FUNCTION float_value(bits bigint, exponent_bits integer, fraction_bits integer) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    most integer := (1 << exponent_bits) - 1;
    exponent integer := (bits >> fraction_bits)::integer & most;
    fraction bigint := bits & ((1::bigint << fraction_bits) - 1);
    below boolean := (bits >> (exponent_bits + fraction_bits)) & 1 = 1;
    found double precision;
BEGIN
    IF exponent = most THEN
        RETURN to_jsonb(CASE WHEN fraction <> 0 THEN 'nan' WHEN below THEN '-inf' ELSE 'inf' END);
    ELSIF exponent = 0 THEN
        found := fraction::double precision * power(2::double precision, 1 - most / 2 - fraction_bits);
    ELSE
        found := (1 + fraction::double precision / (1::bigint << fraction_bits)) * power(2::double precision, exponent - most / 2);
    END IF;
    RETURN to_jsonb(CASE WHEN below THEN -found ELSE found END);
END
$$;

CREATE FUNCTION big_integer(data bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    found numeric := 0;
    modulus numeric := 1;
    part bytea;
BEGIN
    FOR at IN 0 .. octet_length(data) - 1 BY 7 LOOP
        part := substring(data FROM at + 1 FOR 7);
        found := found * (1::bigint << (8 * octet_length(part))) + whole(part);
        modulus := modulus * (1::bigint << (8 * octet_length(part)));
    END LOOP;
    IF octet_length(data) > 0 AND get_byte(data, 0) > 127 THEN
        found := found - modulus;
    END IF;
    RETURN to_jsonb(found);
END
$$;

CREATE FUNCTION clock_text(hours bigint, minutes bigint, seconds bigint, micros bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT lpad(hours::text, 2, '0') || ':' || lpad(minutes::text, 2, '0') || ':' || lpad(seconds::text, 2, '0')
        || CASE WHEN micros > 0 THEN '.' || lpad(micros::text, 6, '0') ELSE '' END
$$;

CREATE FUNCTION micros_of(data bytea) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (signed(bytes_at(data, 0, 4))::numeric * 86400 + signed(bytes_at(data, 4, 4))) * 1000000 + signed(bytes_at(data, 8, 4))
$$;

-- The offset from UTC, or the key of a zone in brackets; nothing for a moment without one.
CREATE FUNCTION zone_text(data bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    kind text := encode(substring(data FOR 1), 'escape');
    away bigint;
    shown text;
BEGIN
    IF kind = '' THEN
        RETURN '';
    ELSIF kind = 'Z' THEN
        RETURN '+00:00';
    ELSIF kind = 'K' THEN
        RETURN '[' || convert_from(substring(data FROM 2), 'UTF8') || ']';
    ELSIF kind NOT IN ('F', 'N') THEN
        RAISE EXCEPTION 'no time zone begins like this' USING ERRCODE = 'data_exception';
    END IF;
    away := micros_of(substring(data FROM 2 FOR 12));
    shown := clock_text(abs(away) / 3600000000, abs(away) / 60000000 % 60, abs(away) / 1000000 % 60, abs(away) % 1000000);
    RETURN CASE WHEN away < 0 THEN '-' ELSE '+' END || CASE WHEN away % 60000000 = 0 THEN left(shown, 5) ELSE shown END;
END
$$;

CREATE FUNCTION date_text(data bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT lpad(whole(bytes_at(data, 0, 2))::text, 4, '0') || '-' || lpad(get_byte(data, 2)::text, 2, '0') || '-' || lpad(get_byte(data, 3)::text, 2, '0')
$$;

CREATE FUNCTION time_text(data bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT clock_text(get_byte(data, 0), get_byte(data, 1), get_byte(data, 2), whole(bytes_at(data, 3, 4))) || zone_text(substring(data FROM 9))
$$;

-- A list of pairs as an object; keys that are no text are the text of their JSON, and of equal keys the last one counts.
CREATE FUNCTION object_of(keys jsonb[], found jsonb[]) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT coalesce(jsonb_object_agg(CASE WHEN jsonb_typeof(p.key) = 'string' THEN p.key #>> '{}' ELSE p.key::text END, p.value ORDER BY p.place), '{}')
    FROM unnest(keys, found) WITH ORDINALITY AS p (key, value, place)
$$;

CREATE FUNCTION extension_value(code integer, data bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    inside record;
BEGIN
    CASE code
    WHEN 1 THEN RETURN jsonb_build_object('$text', in_base64(data));
    WHEN 2 THEN RETURN big_integer(data);
    WHEN 3 THEN RETURN to_jsonb(convert_from(data, 'UTF8'));
    WHEN 4 THEN RETURN to_jsonb(date_text(data) || 'T' || time_text(substring(data FROM 5)));
    WHEN 5 THEN RETURN to_jsonb(date_text(data));
    WHEN 6 THEN RETURN to_jsonb(time_text(data));
    WHEN 7 THEN RETURN to_jsonb(micros_of(data) * 0.000001);
    WHEN 8 THEN RETURN to_jsonb(encode(data, 'hex')::uuid);
    WHEN 9, 10, 11, 12 THEN
        inside := read_value(data, 0);
        IF inside.next <> octet_length(data) OR jsonb_typeof(inside.value) <> 'array' THEN
            RAISE EXCEPTION 'an array belongs here' USING ERRCODE = 'data_exception';
        END IF;
        RETURN CASE WHEN code < 12 THEN inside.value ELSE (
            SELECT object_of(coalesce(array_agg(p.pair -> 0 ORDER BY p.place), '{}'), coalesce(array_agg(p.pair -> 1 ORDER BY p.place), '{}'))
            FROM jsonb_array_elements(inside.value) WITH ORDINALITY AS p (pair, place)
        ) END;
    -- One of a later release.
    ELSE RETURN jsonb_build_object('$extension', code, '$bytes', in_base64(data));
    END CASE;
END
$$;

-- The value that begins at a byte, and the byte behind it.
CREATE FUNCTION read_value(data bytea, at integer, OUT value jsonb, OUT next integer) LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    head integer := get_byte(data, at);
    kind text := '';
    width integer := 0;
    size bigint := 0;
    code integer;
    part bytea;
    inside record;
    keys jsonb[] := '{}';
    found jsonb[] := '{}';
BEGIN
    next := at + 1;
    CASE
    WHEN head < 128 THEN value := to_jsonb(head);
    WHEN head < 144 THEN kind := 'map'; size := head - 128;
    WHEN head < 160 THEN kind := 'array'; size := head - 144;
    WHEN head < 192 THEN kind := 'text'; size := head - 160;
    WHEN head = 192 THEN value := 'null';
    WHEN head = 194 THEN value := 'false';
    WHEN head = 195 THEN value := 'true';
    WHEN head BETWEEN 196 AND 198 THEN kind := 'bytes'; width := 1 << (head - 196);
    WHEN head BETWEEN 199 AND 201 THEN kind := 'extension'; width := 1 << (head - 199);
    WHEN head BETWEEN 202 AND 203 THEN kind := 'float'; size := 4 << (head - 202);
    WHEN head BETWEEN 204 AND 207 THEN kind := 'unsigned'; size := 1 << (head - 204);
    WHEN head BETWEEN 208 AND 211 THEN kind := 'signed'; size := 1 << (head - 208);
    WHEN head BETWEEN 212 AND 216 THEN kind := 'extension'; size := 1 << (head - 212);
    WHEN head BETWEEN 217 AND 219 THEN kind := 'text'; width := 1 << (head - 217);
    WHEN head BETWEEN 220 AND 221 THEN kind := 'array'; width := 2 << (head - 220);
    WHEN head BETWEEN 222 AND 223 THEN kind := 'map'; width := 2 << (head - 222);
    WHEN head > 223 THEN value := to_jsonb(head - 256);
    ELSE RAISE EXCEPTION 'no value begins like this' USING ERRCODE = 'data_exception';
    END CASE;
    IF kind = '' THEN
        RETURN;
    END IF;
    IF width > 0 THEN
        size := whole(bytes_at(data, next, width));
        next := next + width;
    END IF;
    IF kind = 'array' THEN
        FOR place IN 1 .. size LOOP
            inside := read_value(data, next);
            found := found || inside.value;
            next := inside.next;
        END LOOP;
        value := to_jsonb(found);
        RETURN;
    ELSIF kind = 'map' THEN
        FOR place IN 1 .. size LOOP
            inside := read_value(data, next);
            keys := keys || inside.value;
            inside := read_value(data, inside.next);
            found := found || inside.value;
            next := inside.next;
        END LOOP;
        value := object_of(keys, found);
        RETURN;
    ELSIF kind = 'extension' THEN
        code := signed(bytes_at(data, next, 1));
        next := next + 1;
    END IF;
    part := bytes_at(data, next, size);
    next := next + size::integer;
    CASE kind
    WHEN 'text' THEN value := text_value(part);
    WHEN 'bytes' THEN value := jsonb_build_object('$bytes', in_base64(part));
    WHEN 'signed' THEN value := to_jsonb(signed(part));
    WHEN 'unsigned' THEN value := to_jsonb(CASE WHEN whole(part) < 0 THEN whole(part)::numeric + 18446744073709551616 ELSE whole(part)::numeric END);
    WHEN 'float' THEN value := CASE size WHEN 4 THEN float_value(whole(part), 8, 23) ELSE float_value(whole(part), 11, 52) END;
    WHEN 'extension' THEN value := extension_value(code, part);
    END CASE;
END
$$;

-- A payload as JSON; NULL for bytes that are none.
CREATE FUNCTION fields(data bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT COST 10000 SET search_path FROM CURRENT AS $$
DECLARE
    -- A copy in one piece: the stored form would be unpacked again for every byte that is looked at.
    bytes bytea := data || ''::bytea;
    found record;
BEGIN
    found := read_value(bytes, 0);
    RETURN CASE WHEN found.next = octet_length(bytes) THEN found.value END;
EXCEPTION
    WHEN data_exception OR program_limit_exceeded THEN
        RETURN NULL;
END
$$;

-- ── Moments and standings ────────────────────────────────────────────────────────────────────────────────────────────

-- Microseconds since 1970 as a moment; NULL for what is none, as a hand may have left it.
CREATE FUNCTION moment(micros bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN micros BETWEEN -62135596800000000 AND 253402300799999999
        THEN '1970-01-01 00:00:00+00'::timestamptz + micros * interval '1 microsecond' END
$$;

CREATE FUNCTION uuid_of(id bytea) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN octet_length(id) = 16 THEN encode(id, 'hex')::uuid END
$$;

-- How things stand in a stream, told from its last 64 events: the words of `eventlog streams`, by the rules of agents/listing.py.
CREATE FUNCTION standing(stream bigint) RETURNS text LANGUAGE plpgsql STABLE STRICT COST 10000 SET search_path FROM CURRENT AS $$
DECLARE
    e record;
    fact jsonb;
    inputs integer := 0;
    settled integer := 0;
    signals text[] := '{}';
    ready bigint;
BEGIN
    FOR e IN
        SELECT n.version, n.type, coalesce((SELECT b.data FROM blobs b WHERE b.digest = n.blob), n.data) AS data
        FROM events n WHERE n.stream_id = stream ORDER BY n.version DESC LIMIT 64
    LOOP
        CASE
        WHEN e.type = 'input.received' THEN inputs := inputs + 1;
        WHEN e.type IN ('intent.settled', 'approval.decided', 'reply.received', 'cancel.requested') THEN settled := settled + 1;
        WHEN e.type = 'signal.received' THEN signals := signals || (fields(e.data) ->> 'name');
        WHEN e.type IN ('input.redriven', 'activation.continued') THEN RETURN 'queued';
        WHEN e.type = 'activation.completed' THEN
            -- Whether more inputs came than were handled can be told of a stream that is seen whole.
            RETURN CASE WHEN inputs > 0 OR (
                (SELECT max(n.version) FROM events n WHERE n.stream_id = stream) < 64
                AND (SELECT count(*) FROM events n WHERE n.stream_id = stream AND n.type = 'input.received') > (fields(e.data) ->> 'seq')::bigint + 1
            ) THEN 'queued' ELSE 'completed' END;
        WHEN e.type = 'activation.suspended' THEN
            fact := fields(e.data);
            SELECT settled + count(*) FILTER (WHERE substring(w.wait FROM '^signal-[^-]*-[^-]*-(.*)$') = ANY (signals)) INTO ready
            FROM jsonb_array_elements_text(fact -> 'waits') AS w (wait);
            RETURN CASE WHEN ready > 0 AND ready >= CASE WHEN fact ->> 'mode' = 'all' THEN jsonb_array_length(fact -> 'waits') ELSE 1 END
                THEN 'due' ELSE 'suspended' END;
        WHEN e.type = 'activation.failed' THEN
            fact := fields(e.data);
            RETURN CASE
                WHEN fact IS NULL THEN 'failed'
                WHEN fact ->> 'retry_at' IS NOT NULL THEN 'retrying'
                WHEN inputs > 0 AND NOT coalesce((fact ->> 'holds')::boolean, false) THEN 'queued'
                ELSE 'parked'
            END;
        WHEN e.type = 'stream.blocked' THEN RETURN 'blocked';
        WHEN e.type IN ('model_call.cached', 'tool_call.cached', 'timer.fired', 'intent.staged', 'timer.armed', 'traced') THEN RETURN 'running';
        ELSE NULL;
        END CASE;
    END LOOP;
    RETURN CASE WHEN inputs > 0 THEN 'queued' ELSE '' END;
END
$$;

-- ── Views ────────────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE VIEW history AS
SELECT
    e.position, moment(e.recorded_at) AS recorded_at, s.name AS stream, s.category AS agent, substr(s.name, length(s.category) + 2) AS key, e.version, e.type,
    e.schema,
    fields(CASE WHEN e.blob IS NULL THEN e.data ELSE (SELECT b.data FROM blobs b WHERE b.digest = e.blob) END) AS fields,
    uuid_of(e.event_id) AS id, uuid_of(e.correlation) AS correlation, uuid_of(e.causation) AS causation, e.event_id, e.stream_id
FROM events e JOIN streams s ON s.id = e.stream_id;

-- OFFSET 0 here and below: told once a row, and not again for every condition on it.
CREATE VIEW runs AS
SELECT r.agent, r.key, r.state, r.events, r.began_at, r.last_type, r.last_at, now() - r.last_at AS age, r.stream, r.stream_id
FROM (
    SELECT
        s.category AS agent, substr(s.name, length(s.category) + 2) AS key, standing(s.id) AS state, l.version + 1 AS events, moment(f.recorded_at) AS began_at,
        l.type AS last_type, moment(l.recorded_at) AS last_at, s.name AS stream, s.id AS stream_id
    FROM streams s
    CROSS JOIN LATERAL (SELECT e.version, e.type, e.recorded_at FROM events e WHERE e.stream_id = s.id ORDER BY e.version DESC LIMIT 1) l
    CROSS JOIN LATERAL (SELECT e.recorded_at FROM events e WHERE e.stream_id = s.id ORDER BY e.version LIMIT 1) f
    OFFSET 0
) r
WHERE r.state <> '';

CREATE VIEW waiting AS
SELECT
    r.agent, r.key, r.state, (l.fields ->> 'seq')::bigint AS seq, w.wait,
    CASE WHEN w.wait ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN 'intent' ELSE substring(w.wait FROM '^[a-z]+') END AS kind,
    l.fields ->> 'mode' AS mode, l.recorded_at AS since, moment(nullif((l.fields ->> 'deadline')::bigint, 0)) AS deadline, now() - l.recorded_at AS age, r.stream
FROM (SELECT * FROM runs WHERE state IN ('suspended', 'due') OFFSET 0) r
CROSS JOIN LATERAL (
    SELECT h.fields, h.recorded_at FROM history h WHERE h.stream_id = r.stream_id AND h.type = 'activation.suspended' ORDER BY h.version DESC LIMIT 1
) l
CROSS JOIN LATERAL jsonb_array_elements_text(l.fields -> 'waits') AS w (wait);

-- What became of an intent stands under ids made of the intent's own (agents/intents.py), so it is found by the index.
CREATE VIEW intents AS
SELECT
    i.agent, i.key, i.intent_id, i.tool, i.args,
    -- The words of `eventlog intents` (agents/operating.py).
    coalesce(o.fields ->> 'status', CASE
        WHEN a.distrusted THEN 'DISTRUSTED' WHEN a.attempts = 0 THEN 'STAGED' WHEN a.postponed = a.attempts THEN 'POSTPONED' ELSE 'ATTEMPTED'
    END) AS status,
    a.attempts, i.staged_at, a.attempted_at, o.recorded_at AS settled_at, i.expires_at,
    CASE WHEN o.version IS NULL AND a.postponed = a.attempts THEN a.retry_at END AS retry_at,
    coalesce(o.recorded_at, now()) - i.staged_at AS age, o.fields -> 'value' AS value, nullif(o.fields -> 'failure', 'null') AS failure,
    o.fields ->> 'settled_by' AS settled_by, o.fields ->> 'reason' AS reason, i.business_key, i.seq, i.step, i.stream
FROM (
    SELECT
        h.agent, h.key, h.fields ->> 'intent_id' AS intent_id, h.fields ->> 'tool' AS tool, h.fields -> 'args' AS args, h.recorded_at AS staged_at,
        moment((h.fields ->> 'expires_at')::bigint) AS expires_at, nullif(h.fields ->> 'key', '') AS business_key, (h.fields ->> 'seq')::bigint AS seq,
        (h.fields ->> 'step')::bigint AS step, h.stream, h.stream_id, h.version
    FROM (SELECT * FROM history WHERE type = 'intent.staged' OFFSET 0) h
    OFFSET 0
) i
LEFT JOIN LATERAL (
    SELECT h.fields, h.recorded_at, h.version FROM history h
    WHERE h.stream_id = i.stream_id AND h.type = 'intent.settled' AND h.event_id IN (
        substring(sha256(convert_to('settled|' || i.intent_id, 'UTF8')) FOR 16), substring(sha256(convert_to('begun|' || i.intent_id, 'UTF8')) FOR 16)
    )
    LIMIT 1
) o ON true
CROSS JOIN LATERAL (
    SELECT
        coalesce(max((h.fields ->> 'attempt')::bigint) FILTER (WHERE h.type = 'intent.attempted'), 0) AS attempts,
        max(h.recorded_at) FILTER (WHERE h.type = 'intent.attempted') AS attempted_at,
        max((h.fields ->> 'attempt')::bigint) FILTER (WHERE h.type = 'intent.postponed') AS postponed,
        max(moment((h.fields ->> 'retry_at')::bigint)) FILTER (WHERE h.type = 'intent.postponed') AS retry_at,
        bool_or(h.type = 'intent.distrusted') AS distrusted
    FROM (
        SELECT * FROM history
        WHERE stream_id = i.stream_id AND version > i.version AND version < coalesce(o.version, 9223372036854775807)
            AND type IN ('intent.attempted', 'intent.postponed', 'intent.distrusted')
        OFFSET 0
    ) h
    WHERE h.fields ->> 'intent_id' = i.intent_id
) a;

CREATE VIEW dead_letters AS
SELECT * FROM (
    SELECT
        p.agent, p.key, 'parked' AS kind, (p.fields ->> 'seq')::bigint AS seq, p.fields ->> 'input_id' AS input_id, (p.fields ->> 'attempt')::bigint AS attempts,
        p.recorded_at AS since, now() - p.recorded_at AS age, p.fields -> 'failure' ->> 'type' AS error, p.fields -> 'failure' ->> 'message' AS message,
        coalesce((p.fields ->> 'holds')::boolean, false) AS holds, p.stream, p.version, p.position
    FROM (SELECT * FROM history WHERE type = 'activation.failed' OFFSET 0) p
    WHERE p.fields ->> 'retry_at' IS NULL AND NOT EXISTS (
        SELECT FROM history h
        WHERE h.stream_id = p.stream_id AND h.version > p.version AND (
            h.type = 'input.redriven' AND h.fields -> 'seq' = p.fields -> 'seq'
            OR h.type = 'activation.failed' AND h.fields -> 'seq' = p.fields -> 'seq' AND h.fields ->> 'retry_at' IS NULL
        )
    )
    UNION ALL
    SELECT
        b.agent, b.key, 'blocked', NULL, NULL, NULL, b.recorded_at, now() - b.recorded_at, b.fields -> 'failure' ->> 'type', b.fields -> 'failure' ->> 'message',
        false, b.stream, b.version, b.position
    FROM (SELECT * FROM history WHERE type = 'stream.blocked' OFFSET 0) b
    WHERE NOT EXISTS (
        -- Whatever is no arrival was written by a worker, which has taken the stream up again.
        SELECT FROM events e
        WHERE e.stream_id = b.stream_id AND e.version > b.version AND e.type <> ALL (ARRAY[
            'input.received', 'signal.received', 'reply.received', 'intent.attempted', 'intent.postponed', 'intent.settled', 'intent.distrusted',
            'approval.decided', 'cancel.requested', 'input.redriven'
        ])
    )
) d;

-- Counted up to 100 000 events, and below the oldest transaction that may still write, as readers of the log are shown them.
CREATE VIEW lag AS
SELECT
    c.name, c.position, h.horizon, least(n.events, 100000) AS events, n.events > 100000 AS more, moment(n.oldest) AS oldest_at, now() - moment(n.oldest) AS age,
    (SELECT count(*) FROM parked p WHERE p.projection = c.name) AS parked, EXISTS (SELECT FROM pointed p WHERE p.view = c.name) AS live
FROM checkpoints c
CROSS JOIN (SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + m.xid_offset) << 20 AS horizon FROM meta m) h
CROSS JOIN LATERAL (
    SELECT
        (SELECT count(*) FROM (SELECT FROM events WHERE position > c.position AND position < h.horizon LIMIT 100001) e) AS events,
        (SELECT recorded_at FROM events WHERE position > c.position AND position < h.horizon ORDER BY position LIMIT 1) AS oldest
) n;

COMMENT ON VIEW history IS 'Every event, its fields as JSON.';
COMMENT ON VIEW runs IS 'Every key that an agent has worked for, and how things stand.';
COMMENT ON VIEW waiting IS 'What suspended keys wait for, one row a wait.';
COMMENT ON VIEW intents IS 'What agents wanted done in the world, and what became of it.';
COMMENT ON VIEW dead_letters IS 'Inputs that were given up for now, and streams that stand still.';
COMMENT ON VIEW lag IS 'How far readers of the whole log are behind.';
