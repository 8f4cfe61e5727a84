INSERT INTO views (name, revision) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET revision = views.revision + 1
