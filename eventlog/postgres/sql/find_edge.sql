-- The position so many events further on; no row when there are fewer.
SELECT position FROM events WHERE position > $1 AND position <= $2 ORDER BY position OFFSET $3 LIMIT 1
