SELECT
    (SELECT count(*) FROM schedule WHERE queue = $1 AND wake_at <= $2 :categories)
    + (
        SELECT count(*) FROM schedule
        WHERE owner IS NOT NULL AND queue = $1 AND lease_until > $2 AND (wake_at IS NULL OR wake_at > $2) :categories
    )
