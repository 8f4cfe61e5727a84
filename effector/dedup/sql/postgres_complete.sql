WITH swept AS (
    DELETE FROM {schema}.records
    WHERE intent_id IN (SELECT intent_id FROM {schema}.records WHERE expires_at <= %(before)s ORDER BY expires_at LIMIT %(most)s FOR UPDATE SKIP LOCKED)
)
UPDATE {schema}.records
SET status = %(status)s, result = %(result)s, expires_at = %(expires_at)s
WHERE intent_id = %(intent_id)s AND token = %(token)s AND status IS NULL
RETURNING token
