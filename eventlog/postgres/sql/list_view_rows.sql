SELECT key, value FROM view_rows WHERE view = $1 AND :range ORDER BY key LIMIT $2
