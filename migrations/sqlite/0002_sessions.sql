-- Conversations and what was said in them.
CREATE TABLE sessions (
    tenant_id         BLOB    NOT NULL,
    owner_id          INTEGER NOT NULL,
    id                BLOB    NOT NULL,
    title             TEXT,
    labels            TEXT    NOT NULL,
    channel           TEXT    NOT NULL,
    memory            TEXT    NOT NULL,
    message_count     INTEGER NOT NULL DEFAULT 0,
    last_consolidated INTEGER NOT NULL DEFAULT 0,
    indexed_seq       INTEGER NOT NULL DEFAULT 0,
    version           INTEGER NOT NULL DEFAULT 1,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners,
    CHECK (last_consolidated BETWEEN 0 AND message_count),
    CHECK (indexed_seq BETWEEN 0 AND message_count)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_update ON sessions (tenant_id, owner_id, updated_at, id);
-- Recall also covers what is committed and not yet indexed: few sessions at any time.
CREATE INDEX sessions_unindexed ON sessions (tenant_id, owner_id, id) WHERE indexed_seq < message_count;

CREATE TABLE messages (
    tenant_id    BLOB    NOT NULL,
    owner_id     INTEGER NOT NULL,
    session_id   BLOB    NOT NULL,
    seq          INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    turn_id      BLOB,
    role         TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    name         TEXT,
    tool_calls   TEXT    NOT NULL,
    tool_call_id TEXT,
    partial      INTEGER NOT NULL,
    learnable    INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, session_id, seq),
    UNIQUE (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
) STRICT;
