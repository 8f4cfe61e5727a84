-- A position begins with the transaction id it was written under, raised by `xid_offset`; every committed one is below that of the snapshot's end.
SELECT coalesce((SELECT max(position) FROM events) >> 20, 0) >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (SELECT xid_offset FROM meta)
