-- The same locks as begin_append takes for streams that are appended to wherever they end.
SELECT pg_advisory_xact_lock(1769729895, key)
FROM (SELECT DISTINCT hashtext(current_schema || ' ' || name) AS key FROM unnest($1::text[]) AS w (name) ORDER BY key) AS wanted
