-- Where the next so many events end; the first position of all may be a hand's, and below 1.
SELECT max(position) FROM (SELECT position FROM events WHERE position > $1 ORDER BY position LIMIT $2) w
