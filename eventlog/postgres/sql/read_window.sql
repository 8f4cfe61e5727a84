-- As `read_all_filtered`, with the last position of the window behind each row, and one row of it alone where nothing is found: what a tail
-- asks all the time is answered in one round trip.
WITH edge AS MATERIALIZED (
    SELECT coalesce((SELECT position FROM events WHERE position > $1 AND position <= $2 ORDER BY position OFFSET $3 - 1 LIMIT 1), $2) AS position
)
SELECT f.*, edge.position
FROM edge
LEFT JOIN LATERAL (
    SELECT e.position, s.name, e.version, e.event_id, e.type, e.schema, e.data, e.recorded_at, e.correlation, e.causation
    FROM (SELECT * FROM events WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) e
    JOIN streams s ON s.id = e.stream_id
    WHERE true :filters
    ORDER BY e.position LIMIT $4
) f ON true
ORDER BY f.position
