INSERT INTO records (intent_id, owner, token, until, attempts, status, expires_at, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (intent_id) DO UPDATE SET
    owner = excluded.owner,
    token = excluded.token,
    until = excluded.until,
    attempts = excluded.attempts,
    status = excluded.status,
    expires_at = excluded.expires_at,
    result = excluded.result
