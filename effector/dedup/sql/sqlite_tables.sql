-- `result` comes last in its row, so that the columns before it are read without it. `until` 0: handed back.
CREATE TABLE records (
    intent_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    token INTEGER NOT NULL,
    until INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    status TEXT,
    expires_at INTEGER NOT NULL DEFAULT 0,
    result BLOB
);

CREATE INDEX records_by_expiry ON records (expires_at) WHERE status IS NOT NULL;
