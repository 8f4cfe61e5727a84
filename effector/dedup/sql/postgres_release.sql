UPDATE {schema}.records
SET until = 0, token = token + 1
WHERE intent_id = %(intent_id)s AND token = %(token)s AND status IS NULL
RETURNING token
