INSERT INTO views (name, revision, cleared) VALUES ($1, 1, 1)
ON CONFLICT (name) DO UPDATE SET revision = views.revision + 1, cleared = views.cleared + 1
