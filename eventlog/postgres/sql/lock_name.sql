-- Who points a name somewhere else does so alone.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.pointed.' || $1, 0))
