-- Rows are (queue, name, wake_at); `:moves` says what becomes of a name that is there already.
INSERT INTO schedule (queue, name, wake_at) VALUES :rows
ON CONFLICT (queue, name) DO UPDATE SET :moves
