-- What was done to memories, so that each change can be listed and undone as a whole, and how what is said of a key is found.
CREATE TABLE changes (
    tenant_id   BLOB    NOT NULL,
    owner_id    INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    -- The number of the owner's newest change of memories when it was made: what is later than what.
    number      INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    -- Stays when the session is deleted and its memories are kept.
    session_id  BLOB,
    -- Of a consolidation the boundary before and after, of an import the number of the last message before it and of its last.
    from_seq    INTEGER,
    to_seq      INTEGER,
    created_at  INTEGER NOT NULL,
    reverted_by BLOB,
    reverts     BLOB,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
) STRICT;

CREATE INDEX changes_by_creation ON changes (tenant_id, owner_id, created_at, id);
CREATE INDEX changes_by_session ON changes (tenant_id, owner_id, session_id, created_at, id);

CREATE TABLE change_items (
    tenant_id     BLOB    NOT NULL,
    owner_id      INTEGER NOT NULL,
    change_id     BLOB    NOT NULL,
    -- Stays when the memory is gone; its values go with it.
    memory_id     BLOB    NOT NULL,
    op            TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    -- The values that the memory lost, and those in their place, by name, as JSON objects.
    before_values TEXT    NOT NULL,
    after_values  TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, change_id, memory_id),
    FOREIGN KEY (tenant_id, owner_id, change_id) REFERENCES changes ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX change_items_by_memory ON change_items (tenant_id, owner_id, memory_id);

-- Whoever says something of a key reads what else is said of it.
CREATE INDEX memories_by_key ON memories (tenant_id, owner_id, fact_key, coalesce(valid_to, 9223372036854775807)) WHERE fact_key IS NOT NULL;
-- Whoever removes a memory looks for what it had ended.
CREATE INDEX memories_by_successor ON memories (tenant_id, owner_id, superseded_by) WHERE superseded_by IS NOT NULL;
