SELECT value FROM view_rows WHERE view = coalesce((SELECT view FROM pointed WHERE name = $1), $1) AND key = $2
