SELECT base, ids, heads FROM begin_append($1, $2, $3, $4)
