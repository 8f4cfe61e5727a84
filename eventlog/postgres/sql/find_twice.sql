SELECT coalesce(min(s.name), 'stream id ' || min(e.stream_id)), min(e.version), substring(min(e.event_id::text) FROM 3), string_agg(e.position::text, ', ')
FROM events e LEFT JOIN streams s ON s.id = e.stream_id
GROUP BY :columns HAVING count(*) > 1
ORDER BY min(e.position) LIMIT $1
