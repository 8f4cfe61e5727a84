-- Commits to these views wait until this transaction has ended; a view that was never written to has no row yet.
INSERT INTO views (name, revision)
SELECT w.name, 0 FROM unnest($1::text[]) AS w (name) ORDER BY w.name COLLATE "C"
ON CONFLICT (name) DO UPDATE SET revision = views.revision
