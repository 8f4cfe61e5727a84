-- Views as 003 made them, and what vouching does: an intent that somebody has vouched for is distrusted no longer, and what is
-- signed or told about answers takes no stream up again.

-- What became of an intent stands under ids made of the intent's own (agents/intents.py), so it is found by the index.
CREATE OR REPLACE VIEW intents AS
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
        -- Unless somebody has vouched for it since.
        coalesce(
            max(h.version) FILTER (WHERE h.type = 'intent.distrusted') > coalesce(max(h.version) FILTER (WHERE h.type = 'intent.readmitted'), -1), false
        ) AS distrusted
    FROM (
        SELECT * FROM history
        WHERE stream_id = i.stream_id AND version > i.version AND version < coalesce(o.version, 9223372036854775807)
            AND type IN ('intent.attempted', 'intent.postponed', 'intent.distrusted', 'intent.readmitted')
        OFFSET 0
    ) h
    WHERE h.fields ->> 'intent_id' = i.intent_id
) a;

CREATE OR REPLACE VIEW dead_letters AS
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
            'intent.readmitted', 'outcome.signed', 'approval.decided', 'approval.signed', 'approval.undelivered', 'approval.redriven', 'cancel.requested',
            'input.redriven'
        ])
    )
) d;
