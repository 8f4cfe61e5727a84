-- Waits for a rival's transaction and judges the row that it leaves. Gives no row when the intent is held or done by then.
INSERT INTO {schema}.records AS held (intent_id, owner, token, until, attempts, call)
VALUES (%(intent_id)s, %(owner)s, %(now)s, %(until)s, 0, %(call)s)
ON CONFLICT (intent_id) DO UPDATE SET
    owner = excluded.owner,
    token = held.token + 1,
    until = excluded.until,
    attempts = CASE WHEN held.status IS NULL THEN held.attempts ELSE 0 END,
    call = excluded.call,
    status = NULL,
    expires_at = NULL,
    result = NULL
WHERE CASE WHEN held.status IS NULL THEN held.until ELSE held.expires_at END <= %(now)s
RETURNING token, attempts
