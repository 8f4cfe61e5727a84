SELECT coalesce((SELECT cleared FROM views WHERE name = $1), 0)
