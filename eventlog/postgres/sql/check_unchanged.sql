SELECT check_unchanged($1, $2, $3)
