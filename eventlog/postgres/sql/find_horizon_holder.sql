-- Asked once a second by everybody who watches: the first two conditions end it at once while no event waits.
WITH horizon AS MATERIALIZED (
    SELECT xmin.xid, (xmin.xid + (SELECT xid_offset FROM meta)) << 20 AS position
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xid) xmin
), hidden AS MATERIALIZED (
    SELECT count(*) AS events, min(recorded_at) AS since
    FROM (SELECT recorded_at FROM events WHERE position >= (SELECT position FROM horizon) ORDER BY position LIMIT 10000) first_ones
), holders AS (
    SELECT backend_xid AS xid, pid, usename::text AS role, application_name, datname::text AS database, state,
        extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age, query, NULL::text AS prepared
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
    UNION ALL
    SELECT transaction, NULL, owner::text, NULL, database::text, 'prepared',
        extract(epoch FROM clock_timestamp() - prepared)::float8, NULL, gid
    FROM pg_prepared_xacts
)
SELECT h.xid, x.events, x.since, o.pid, o.role, o.application_name, o.database, o.state, o.age, o.query, o.prepared
FROM horizon h CROSS JOIN hidden x
LEFT JOIN LATERAL (SELECT * FROM holders ORDER BY age(xid) DESC LIMIT 1) o ON true
WHERE x.events > 0
