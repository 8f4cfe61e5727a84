-- INDEXED BY: few names are held, and without statistics the planner would walk the whole queue to find them.
SELECT min(moment) FROM (
    SELECT moment FROM (SELECT wake_at AS moment FROM schedule WHERE queue = ?1 AND wake_at IS NOT NULL AND owner IS NULL ORDER BY wake_at LIMIT 1)
    UNION ALL
    SELECT max(wake_at, lease_until) FROM schedule INDEXED BY schedule_by_owner WHERE owner IS NOT NULL AND queue = ?1 AND wake_at IS NOT NULL
)
