-- What was created under a key of the caller's: the resources' ids, never the answer. Void after 24 hours.
CREATE TABLE idempotency (
    tenant_id  BLOB    NOT NULL,
    owner_id   INTEGER NOT NULL,
    operation  TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body_hash  BLOB    NOT NULL,
    resources  TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, operation, key),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_at);
