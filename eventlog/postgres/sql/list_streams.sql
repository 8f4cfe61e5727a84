SELECT name FROM streams WHERE :range ORDER BY name LIMIT $1
