-- `until` 0: handed back. `call`: the last claim or attempt, so that one whose answer was lost is not made twice.
CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {schema}.release (version integer NOT NULL);

CREATE TABLE IF NOT EXISTS {schema}.records (
    intent_id text COLLATE "C" PRIMARY KEY,
    owner text NOT NULL,
    token bigint NOT NULL,
    until bigint NOT NULL,
    attempts integer NOT NULL,
    call text NOT NULL,
    status text,
    expires_at bigint,
    result bytea
);

CREATE INDEX IF NOT EXISTS records_by_expiry ON {schema}.records (expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO {schema}.release (version) SELECT {version} WHERE NOT EXISTS (SELECT 1 FROM {schema}.release)
