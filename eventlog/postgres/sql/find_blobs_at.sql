-- Which of these positions have their payload elsewhere, and how large it is; no size: it is gone.
SELECT e.position, e.blob, octet_length(b.data)
FROM events e LEFT JOIN blobs b ON b.digest = e.blob
WHERE e.position = ANY($1::bigint[]) AND e.blob IS NOT NULL
