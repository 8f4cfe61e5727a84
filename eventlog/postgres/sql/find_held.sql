-- Tokens under which names are held now, expired leases included.
SELECT s.queue, s.name, s.token
FROM unnest($1::text[], $2::text[]) AS w (queue, name) JOIN schedule s ON s.queue = w.queue AND s.name = w.name
WHERE s.owner IS NOT NULL
