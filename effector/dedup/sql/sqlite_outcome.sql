SELECT status, result FROM records WHERE intent_id = ?
