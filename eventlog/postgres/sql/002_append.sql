-- The writing of a batch. What comes before what is the argument for the order of the log, so it stands here, in one place:
--
-- 1. Streams that are appended to wherever they end are locked by name, so that such writers queue up instead of failing. Advisory locks
--    give a transaction no id yet.
-- 2. Heads are read, and compared with what the batch expects.
-- 3. Only then does the transaction ask for its id. Whoever wrote the heads had committed by then and so has a lower id: along every stream
--    positions grow. A loser of a race must therefore begin a new transaction; a savepoint would keep the id.
-- 4. Everything that another transaction may be writing too is written in one order by all: streams by name, events by stream and version,
--    schedule rows by queue and name, blobs by digest. So writers wait for each other but never in a circle.
-- 5. A stream that gets events is guarded by their versions: of two writers at one head one is refused. One that gets none is not, though
--    its wake-up may be decided by its head (a lease handed back with nothing to do). So behind the locks on schedule rows such heads are
--    looked at once more: whoever appended and moved the same wake-up meanwhile is seen now, and whoever is still to do so waits for us.
--
-- IL001 means that something was not as the batch says: nothing is kept, and the client looks closer.

CREATE FUNCTION begin_append(
    names text[],  -- in order of "C", none twice
    categories text[],
    expected bigint[],  -- the head a stream must have, -1 for none; -2: whatever it has; -3: whatever but none
    growth bigint[],  -- events to come
    OUT base bigint,
    OUT ids bigint[],
    OUT heads bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
    missing bigint;
    refused boolean;
    raised bigint;
BEGIN
    IF -2 = ANY (expected) OR -3 = ANY (expected) THEN
        PERFORM pg_advisory_xact_lock(1769729895, key)
        FROM (
            SELECT DISTINCT hashtext(current_schema || ' ' || w.name) AS key FROM unnest(names, expected) AS w (name, expected)
            WHERE w.expected < -1 ORDER BY key
        ) AS loose;
    END IF;

    SELECT
        array_agg(f.id), array_agg(f.head), count(*) FILTER (WHERE f.id IS NULL AND f.growth > 0),
        bool_or(CASE f.expected WHEN -2 THEN false WHEN -3 THEN f.head < 0 ELSE f.head <> f.expected END)
    INTO ids, heads, missing, refused
    FROM (
        SELECT
            w.expected, w.growth, w.id,
            coalesce((SELECT e.version FROM events e WHERE e.stream_id = w.id ORDER BY e.version DESC LIMIT 1), -1) AS head
        FROM (
            SELECT n.expected, n.growth, (SELECT s.id FROM streams s WHERE s.name = n.name) AS id
            FROM unnest(names, expected, growth) AS n (name, expected, growth)
            OFFSET 0
        ) AS w
        OFFSET 0
    ) AS f;
    IF refused THEN
        RAISE EXCEPTION 'a stream is not where the batch expects it' USING ERRCODE = 'IL001';
    END IF;

    SELECT xid_offset INTO raised FROM meta;
    base := (pg_current_xact_id()::text::bigint + raised) << 20;

    IF missing > 0 THEN
        INSERT INTO streams (name, category)
        SELECT n.name, n.category FROM unnest(names, categories, growth, ids) AS n (name, category, growth, id)
        WHERE n.id IS NULL AND n.growth > 0 ORDER BY n.name
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        IF added < missing THEN
            RAISE EXCEPTION 'a stream was begun by another writer' USING ERRCODE = 'IL001';
        END IF;
        ids := ARRAY(
            SELECT coalesce(n.id, (SELECT s.id FROM streams s WHERE s.name = n.name)) FROM unnest(names, ids) AS n (name, id)
        );
    END IF;
END
$$;

CREATE FUNCTION move_schedule(
    queues text[],  -- in order of "C" with names, no pair twice
    names text[],
    tokens bigint[],  -- the token a name must be held under, or NULL
    releases bigint[],  -- 1: hand the lease back
    modes bigint[],  -- 0: leave the wake-up, 1: set it, 2: bring it forward
    moments bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    there bigint;
    held bigint;
    added bigint;
BEGIN
    SELECT count(*), count(l.token) INTO there, held
    FROM (
        SELECT m.token
        FROM unnest(queues, names, tokens) AS m (queue, name, token)
        JOIN schedule s ON s.queue = m.queue AND s.name = m.name AND (m.token IS NULL OR (s.token = m.token AND s.owner IS NOT NULL))
        ORDER BY m.queue COLLATE "C", m.name COLLATE "C"
        FOR NO KEY UPDATE OF s
    ) AS l;
    IF held < cardinality(array_remove(tokens, NULL)) THEN
        RAISE EXCEPTION 'a lease is not held under its token' USING ERRCODE = 'IL001';
    END IF;

    UPDATE schedule s SET
        wake_at = CASE m.mode WHEN 0 THEN s.wake_at WHEN 1 THEN m.moment ELSE least(s.wake_at, m.moment) END,
        owner = CASE m.release WHEN 1 THEN NULL ELSE s.owner END,
        lease_until = CASE m.release WHEN 1 THEN NULL ELSE s.lease_until END
    FROM unnest(queues, names, releases, modes, moments) AS m (queue, name, release, mode, moment)
    WHERE s.queue = m.queue AND s.name = m.name AND (m.mode > 0 OR m.release > 0);

    IF there < cardinality(names) THEN
        INSERT INTO schedule (queue, name, wake_at)
        SELECT m.queue, m.name, m.moment FROM unnest(queues, names, tokens, modes, moments) AS m (queue, name, token, mode, moment)
        WHERE m.token IS NULL AND m.mode > 0 AND NOT EXISTS (SELECT FROM schedule s WHERE s.queue = m.queue AND s.name = m.name)
        ORDER BY m.queue COLLATE "C", m.name COLLATE "C"
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        IF there + added < cardinality(names) THEN
            RAISE EXCEPTION 'a name was scheduled by another writer' USING ERRCODE = 'IL001';
        END IF;
    END IF;
END
$$;

CREATE FUNCTION check_unchanged(
    names text[], expected bigint[], growth bigint[]  -- see begin_append
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM unnest(names, expected, growth) AS n (name, expected, growth)
        WHERE n.growth = 0 AND n.expected >= -1 AND n.expected <> coalesce((
            SELECT e.version FROM events e WHERE e.stream_id = (SELECT s.id FROM streams s WHERE s.name = n.name) ORDER BY e.version DESC LIMIT 1
        ), -1)
    ) THEN
        RAISE EXCEPTION 'a stream moved on while its wake-up was decided' USING ERRCODE = 'IL001';
    END IF;
END
$$;

CREATE FUNCTION append_events(
    moment bigint,
    names text[], categories text[], expected bigint[], growth bigint[],  -- see begin_append
    -- Events by stream and version. A place is the event's number in the batch, a step its number in what its stream gets, both from 1.
    places bigint[], streams bigint[], steps bigint[], schemas bigint[],
    event_ids bytea[], correlations bytea[], causations bytea[], types text[], digests bytea[], contents bytea[],
    queues text[], scheduled text[], tokens bigint[], releases bigint[], modes bigint[], moments bigint[],  -- see move_schedule
    blob_digests bytea[], blob_contents bytea[],  -- by digest
    OUT base bigint,
    OUT heads bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    SELECT b.base, b.ids, b.heads INTO base, ids, heads FROM begin_append(names, categories, expected, growth) AS b;

    INSERT INTO events (position, stream_id, version, recorded_at, schema, event_id, correlation, causation, type, blob, data)
    SELECT
        base + e.place, ids[e.stream], heads[e.stream] + e.step, moment, e.schema, e.event_id, e.correlation, e.causation, e.type, e.digest, e.content
    FROM unnest(places, streams, steps, schemas, event_ids, correlations, causations, types, digests, contents)
        AS e (place, stream, step, schema, event_id, correlation, causation, type, digest, content);

    IF cardinality(queues) > 0 THEN
        PERFORM move_schedule(queues, scheduled, tokens, releases, modes, moments);
        IF 0 = ANY (growth) THEN
            PERFORM check_unchanged(names, expected, growth);
        END IF;
    END IF;
    IF cardinality(blob_digests) > 0 THEN
        INSERT INTO blobs (digest, data) SELECT b.digest, b.content FROM unnest(blob_digests, blob_contents) AS b (digest, content) ON CONFLICT DO NOTHING;
    END IF;
END
$$;
