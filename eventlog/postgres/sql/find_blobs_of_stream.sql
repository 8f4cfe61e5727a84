-- Which of these versions have their payload elsewhere, and how large it is; no size: it is gone.
SELECT e.version, e.blob, octet_length(b.data)
FROM events e LEFT JOIN blobs b ON b.digest = e.blob
WHERE e.stream_id = (SELECT id FROM streams WHERE name = $1) AND e.version = ANY($2::bigint[]) AND e.blob IS NOT NULL
