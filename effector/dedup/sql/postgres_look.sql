SELECT owner, token, until, attempts, status, coalesce(expires_at, 0), call, CASE WHEN expires_at > %(now)s THEN result END
FROM {schema}.records
WHERE intent_id = %(intent_id)s
