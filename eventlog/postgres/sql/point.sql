INSERT INTO pointed (name, view) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET view = excluded.view
