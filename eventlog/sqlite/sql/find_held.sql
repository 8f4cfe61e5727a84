-- Tokens under which names are held now, expired leases included; rows are (queue, name).
WITH wanted (queue, name) AS (VALUES :rows)
SELECT s.queue, s.name, s.token
FROM wanted w CROSS JOIN schedule s ON s.queue = w.queue AND s.name = w.name
WHERE s.owner IS NOT NULL
