UPDATE {schema}.records
SET until = greatest(until, %(until)s)
WHERE intent_id = %(intent_id)s AND token = %(token)s AND status IS NULL
RETURNING token
