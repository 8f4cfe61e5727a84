INSERT INTO views (name, revision, cleared) VALUES (?, 1, 1)
ON CONFLICT (name) DO UPDATE SET revision = revision + 1, cleared = cleared + 1
