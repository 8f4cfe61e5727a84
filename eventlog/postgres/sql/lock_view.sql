-- One block at a time writes a view. A lock without a row: it gives no transaction id, so that no tail waits for the block.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.views.' || $1, 0))
