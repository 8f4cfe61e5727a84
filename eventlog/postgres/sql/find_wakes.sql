-- LATERAL and OFFSET 0 leave the planner only the primary key, see claim_due.
SELECT w.name, s.wake_at
FROM unnest($2::text[]) AS w (name)
CROSS JOIN LATERAL (SELECT wake_at FROM schedule WHERE queue = $1 AND name = w.name OFFSET 0) s
