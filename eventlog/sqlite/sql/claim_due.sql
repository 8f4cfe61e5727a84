UPDATE schedule SET owner = ?, lease_until = ?, token = token + 1
WHERE queue = ? AND name IN (
    SELECT name FROM schedule
    WHERE queue = ? AND wake_at <= ? AND (owner IS NULL OR lease_until <= ?) :categories
    ORDER BY wake_at, name LIMIT ?
)
RETURNING wake_at, name, token
