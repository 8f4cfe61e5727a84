INSERT INTO view_rows (view, key, value)
SELECT $1, w.key, w.value FROM unnest($2::text[], $3::bytea[]) AS w (key, value)
ON CONFLICT (view, key) DO UPDATE SET value = excluded.value
