-- Who may ask: tenants by the operator's names for them, and their API keys.
CREATE TABLE tenants (
    tenant_id  BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Of an installation that has no other, and the operator's own in one that has.
INSERT INTO tenants (tenant_id, name, created_at)
VALUES (zeroblob(16), 'default', CAST(unixepoch('subsec') * 1000000 AS INTEGER));

CREATE TABLE api_keys (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (tenant_id),
    id         BLOB    NOT NULL UNIQUE,
    -- SHA-256 of the key as text. The secret itself is stored nowhere.
    hash       BLOB    NOT NULL CHECK (length(hash) = 32),
    name       TEXT,
    scopes     TEXT    NOT NULL,
    -- The one user that it is good for.
    user_name  TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    -- The key that followed it.
    successor  BLOB,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

-- An erased user's keys go with the user.
CREATE INDEX api_keys_by_user ON api_keys (tenant_id, user_name) WHERE user_name IS NOT NULL;
