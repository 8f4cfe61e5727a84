SELECT digest, data FROM blobs WHERE digest = ANY($1::bytea[])
