INSERT INTO streams (id, name, category) VALUES :rows
