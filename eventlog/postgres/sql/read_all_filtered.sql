-- The inner LIMIT keeps the planner from looking anywhere else than behind the last position.
SELECT e.position, s.name, e.version, e.event_id, e.type, e.schema, e.data, e.recorded_at, e.correlation, e.causation
FROM (SELECT * FROM events WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) e
JOIN streams s ON s.id = e.stream_id
WHERE true :filters
ORDER BY e.position LIMIT $4
