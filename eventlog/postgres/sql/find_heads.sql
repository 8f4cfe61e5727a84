-- Ids and heads of those streams that are there.
SELECT
    s.name, s.id, coalesce((SELECT e.version FROM events e WHERE e.stream_id = s.id ORDER BY e.version DESC LIMIT 1), -1)
FROM unnest($1::text[]) AS w (name) JOIN streams s ON s.name = w.name
