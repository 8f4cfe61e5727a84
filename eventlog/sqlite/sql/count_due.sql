-- INDEXED BY: see next_wake.
SELECT
    (SELECT count(*) FROM schedule WHERE queue = ?1 AND wake_at <= ?2)
    + (
        SELECT count(*) FROM schedule INDEXED BY schedule_by_owner
        WHERE owner IS NOT NULL AND queue = ?1 AND lease_until > ?2 AND (wake_at IS NULL OR wake_at > ?2)
    )
