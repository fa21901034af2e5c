-- What is remembered, where it comes from, what it is found by, and what must not be learned again.
CREATE TABLE memories (
    tenant_id    BLOB    NOT NULL,
    owner_id     INTEGER NOT NULL,
    id           BLOB    NOT NULL,
    content      TEXT    NOT NULL,
    -- Who said it, where that was named.
    speaker      TEXT,
    -- What it says, normalised, and a fixed-size fingerprint of that for the index.
    identity     TEXT    NOT NULL,
    fingerprint  BLOB    NOT NULL,
    scope        TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    layer        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    importance   INTEGER NOT NULL,
    confidence   REAL    NOT NULL,
    trust        TEXT    NOT NULL,
    pinned       INTEGER NOT NULL,
    fact_key     TEXT,
    session_id   BLOB,
    valid_from   INTEGER NOT NULL,
    valid_to     INTEGER,
    superseded_by BLOB,
    expires_at   INTEGER,
    created_at   INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    last_access  INTEGER NOT NULL,
    version      INTEGER NOT NULL,
    -- The number of the owner's change that wrote it last.
    change       INTEGER NOT NULL,
    -- What it is found by: its terms with their counts, in a form of the program's own.
    terms        BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
) STRICT;

CREATE INDEX memories_by_creation ON memories (tenant_id, owner_id, created_at, id);
CREATE INDEX memories_by_identity ON memories (tenant_id, owner_id, fingerprint) WHERE state = 'current';
CREATE INDEX memories_profile ON memories (tenant_id, owner_id, valid_from, id)
    WHERE state = 'current' AND scope = 'user_profile' AND kind = 'preference';
CREATE INDEX memories_expiring ON memories (tenant_id, owner_id, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE memory_sources (
    tenant_id  BLOB    NOT NULL,
    owner_id   INTEGER NOT NULL,
    memory_id  BLOB    NOT NULL,
    message_id BLOB    NOT NULL,
    session_id BLOB    NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, message_id),
    FOREIGN KEY (tenant_id, owner_id, memory_id) REFERENCES memories ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_sources_by_message ON memory_sources (tenant_id, owner_id, message_id);
CREATE INDEX memory_sources_by_session ON memory_sources (tenant_id, owner_id, session_id, seq);

-- Ids of forgotten memories, so that the same chunk is not indexed again.
CREATE TABLE tombstones (
    tenant_id    BLOB    NOT NULL,
    owner_id     INTEGER NOT NULL,
    memory_id    BLOB    NOT NULL,
    forgotten_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id)
) STRICT, WITHOUT ROWID;

-- What a message must not teach again: a fingerprint, since the text itself is to be forgotten.
CREATE TABLE source_tombstones (
    tenant_id    BLOB    NOT NULL,
    owner_id     INTEGER NOT NULL,
    message_id   BLOB    NOT NULL,
    fingerprint  BLOB    NOT NULL,
    forgotten_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, message_id, fingerprint)
) STRICT, WITHOUT ROWID;
