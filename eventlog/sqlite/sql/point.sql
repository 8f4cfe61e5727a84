INSERT INTO pointed (name, view) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET view = excluded.view
