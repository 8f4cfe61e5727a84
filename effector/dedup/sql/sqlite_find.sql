SELECT owner, token, until, attempts, status, expires_at FROM records WHERE intent_id = ?
