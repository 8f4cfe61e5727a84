-- Rows are (view, key, value).
INSERT INTO view_rows (view, key, value) VALUES :rows
ON CONFLICT (view, key) DO UPDATE SET value = excluded.value
