-- Ids and heads of streams by name; a stream that does not exist gives no row.
WITH wanted (name) AS (VALUES :rows)
SELECT s.name, s.id, coalesce((SELECT max(e.version) FROM events e WHERE e.stream_id = s.id), -1)
FROM wanted w CROSS JOIN streams s ON s.name = w.name
