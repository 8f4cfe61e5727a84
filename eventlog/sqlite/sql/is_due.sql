-- Asked before the write lock is taken, so that an idle worker never takes it.
SELECT 1 FROM schedule
WHERE queue = ? AND wake_at <= ? AND (owner IS NULL OR lease_until <= ?) :categories
LIMIT 1
