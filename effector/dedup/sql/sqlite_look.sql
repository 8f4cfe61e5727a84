-- One statement, so that a result that is removed meanwhile is not missed.
SELECT owner, token, until, attempts, status, expires_at, CASE WHEN status IS NOT NULL AND expires_at > ?2 THEN result END FROM records WHERE intent_id = ?1
