INSERT INTO blobs (digest, data) SELECT b.digest, b.content FROM unnest($1::bytea[], $2::bytea[]) AS b (digest, content) ON CONFLICT DO NOTHING
