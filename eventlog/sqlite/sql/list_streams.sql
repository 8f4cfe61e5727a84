SELECT name FROM streams WHERE name >= ? AND name < ? ORDER BY name LIMIT ?
