SELECT name, wake_at FROM schedule WHERE queue = $1 AND name = ANY($2::text[])
