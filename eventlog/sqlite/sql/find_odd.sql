-- Events with a value of a wrong type. Whether text beyond ASCII is text at all, SQL cannot say: such rows are looked at by whoever asks.
-- A payload is left out where it is one: nobody looks into it.
SELECT
    e.position, CASE typeof(s.name) WHEN 'text' THEN s.name ELSE '(' || quote(e.stream_id) || ')' END,
    e.version, e.event_id, e.type, e.schema, CASE typeof(e.data) WHEN 'blob' THEN x'' ELSE e.data END, e.recorded_at, e.correlation, e.causation
FROM events e LEFT JOIN streams s ON s.id = e.stream_id
WHERE e.position > ?1 AND e.position <= ?2 AND (
    typeof(e.version) <> 'integer' OR typeof(e.event_id) <> 'blob' OR length(e.event_id) <> 16 OR typeof(e.type) <> 'text' OR e.type GLOB '*[^ -~]*'
    OR typeof(e.schema) <> 'integer' OR typeof(e.data) <> 'blob' OR typeof(e.recorded_at) <> 'integer'
    OR e.recorded_at < -62135596800000000 OR e.recorded_at >= 253402300800000000
    OR typeof(e.correlation) NOT IN ('blob', 'null') OR length(e.correlation) <> 16
    OR typeof(e.causation) NOT IN ('blob', 'null') OR length(e.causation) <> 16
)
ORDER BY e.position
