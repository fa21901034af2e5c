-- Requests and their answers. The row is the truth about a turn; its live log is a convenience.
CREATE TABLE turns (
    tenant_id        BLOB    NOT NULL,
    owner_id         INTEGER NOT NULL,
    id               BLOB    NOT NULL,
    session_id       BLOB    NOT NULL,
    status           TEXT    NOT NULL,
    input            TEXT    NOT NULL,
    memory           TEXT    NOT NULL,
    -- What the request set for this turn alone, JSON.
    options          TEXT    NOT NULL DEFAULT '{}',
    -- Rises with every start; every write of a runner names it.
    fence            INTEGER NOT NULL DEFAULT 0,
    -- By the clock of the database.
    lease_until      INTEGER NOT NULL DEFAULT 0,
    events_reserved  INTEGER NOT NULL DEFAULT 0,
    terminal_seq     INTEGER,
    text             TEXT,
    message_id       BLOB,
    finish_reason    TEXT,
    usage            TEXT,
    recalled         TEXT    NOT NULL DEFAULT '[]',
    problem          TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    -- The memories it has shown have been counted as used.
    use_counted      INTEGER NOT NULL DEFAULT 0,
    -- Sequence number of its user's message; null until it starts.
    first_seq        INTEGER,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
) STRICT;

-- One turn of a session runs at a time, whatever the program believes.
CREATE UNIQUE INDEX turns_running ON turns (tenant_id, owner_id, session_id)
    WHERE status IN ('running', 'awaiting_approval');
CREATE INDEX turns_queued ON turns (tenant_id, owner_id, session_id, created_at, id) WHERE status = 'queued';
CREATE INDEX turns_by_session ON turns (tenant_id, owner_id, session_id, first_seq);
CREATE INDEX turns_uncounted ON turns (tenant_id, owner_id, session_id)
    WHERE status = 'completed' AND use_counted = 0;
