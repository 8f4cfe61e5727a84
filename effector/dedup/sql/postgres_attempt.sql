UPDATE {schema}.records
SET attempts = attempts + 1, call = %(call)s
WHERE intent_id = %(intent_id)s AND token = %(token)s AND status IS NULL AND until > %(now)s AND call <> %(call)s
RETURNING attempts
