SELECT least(
    (SELECT min(wake_at) FROM schedule WHERE queue = $1 AND wake_at IS NOT NULL AND owner IS NULL :categories),
    (SELECT min(greatest(wake_at, lease_until)) FROM schedule WHERE queue = $1 AND wake_at IS NOT NULL AND owner IS NOT NULL :categories)
)
