INSERT INTO views (name, revision) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET revision = revision + 1
