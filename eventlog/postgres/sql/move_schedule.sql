SELECT FROM move_schedule($1, $2, $3, $4, $5, $6)
