UPDATE meta SET xid_offset = (SELECT max(position) >> 20 FROM events) + 1 - pg_current_xact_id()::text::bigint
