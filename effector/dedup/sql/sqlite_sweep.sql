DELETE FROM records WHERE intent_id IN (SELECT intent_id FROM records WHERE status IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)
