SELECT coalesce((SELECT cleared FROM views WHERE name = ?), 0)
