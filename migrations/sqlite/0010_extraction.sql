-- Consolidated messages that a model has yet to read: nothing is lost when its answer is bad or does not come.
CREATE TABLE pending_extractions (
    tenant_id  BLOB    NOT NULL,
    owner_id   INTEGER NOT NULL,
    session_id BLOB    NOT NULL,
    -- The messages behind this number, up to and with to_seq.
    from_seq   INTEGER NOT NULL CHECK (from_seq >= 0),
    to_seq     INTEGER NOT NULL CHECK (to_seq > from_seq),
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, session_id, from_seq),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- The sweep for sessions with old messages below the threshold; few have any behind the boundary for long.
CREATE INDEX sessions_unconsolidated ON sessions (tenant_id, owner_id, id) WHERE last_consolidated < message_count;
