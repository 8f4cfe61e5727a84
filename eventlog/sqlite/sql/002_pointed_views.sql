-- `view` is what readers of `name` see.
CREATE TABLE pointed (
    name TEXT PRIMARY KEY,
    view TEXT NOT NULL
) WITHOUT ROWID;

-- How often a view was cleared: how a walk through it finds out that it would not be whole.
ALTER TABLE views ADD COLUMN cleared INTEGER NOT NULL DEFAULT 0;
