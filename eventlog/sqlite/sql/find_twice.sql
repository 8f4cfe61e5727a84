SELECT coalesce(s.name, 'stream id ' || e.stream_id), e.version, e.event_id, group_concat(e.position, ', ')
FROM events e LEFT JOIN streams s ON s.id = e.stream_id
GROUP BY :columns HAVING count(*) > 1
ORDER BY min(e.position) LIMIT ?
