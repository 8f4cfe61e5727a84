SELECT coalesce((SELECT e.version FROM events e WHERE e.stream_id = s.id ORDER BY e.version DESC LIMIT 1), -1)
FROM streams s WHERE s.name = $1
