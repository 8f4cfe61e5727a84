SELECT meant.view, coalesce((SELECT cleared FROM views WHERE name = meant.view), 0)
FROM (SELECT coalesce((SELECT view FROM pointed WHERE name = $1), $1) AS view) AS meant
