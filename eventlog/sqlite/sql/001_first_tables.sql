-- Events and what hangs off them. `data` comes last in its row, so that the columns before it are read without it.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    category TEXT NOT NULL
);

-- AUTOINCREMENT: a position is never given twice, whatever becomes of the rows.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id INTEGER NOT NULL REFERENCES streams (id),
    version INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    type TEXT NOT NULL,
    schema INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    correlation BLOB,
    causation BLOB,
    data BLOB NOT NULL
);

CREATE UNIQUE INDEX events_by_version ON events (stream_id, version);

-- The id first: ids grow with time, so this index grows at its right edge.
CREATE UNIQUE INDEX events_by_id ON events (event_id, stream_id);

CREATE TABLE schedule (
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    wake_at INTEGER,
    owner TEXT,
    lease_until INTEGER,
    token INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

CREATE INDEX schedule_by_wake ON schedule (queue, wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX schedule_by_owner ON schedule (owner) WHERE owner IS NOT NULL;

CREATE TABLE snapshots (
    stream TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE checkpoints (
    name TEXT PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;

-- `revision` grows with every write to a view: how a second writer finds out that it was not alone.
CREATE TABLE views (
    name TEXT PRIMARY KEY,
    revision INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE view_rows (
    view TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (view, key)
) WITHOUT ROWID;

CREATE TABLE parked (
    id INTEGER PRIMARY KEY,
    projection TEXT NOT NULL,
    position INTEGER NOT NULL,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    error TEXT NOT NULL,
    parked_at INTEGER NOT NULL,
    UNIQUE (projection, position)
);
