-- The last event below the horizon: every transaction that could still bring an earlier one has ended. See `reading`.
SELECT coalesce(max(position), 0)
FROM events
WHERE position < ((pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (SELECT xid_offset FROM meta)) << 20)
