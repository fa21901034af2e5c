-- The outbox of derived work: a row is written with what it derives from and deleted with what it leads to.
CREATE TABLE jobs (
    tenant_id   BLOB    NOT NULL,
    owner_id    INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    -- None for work on all that the owner has.
    session_id  BLOB,
    kind        TEXT    NOT NULL,
    state       TEXT    NOT NULL DEFAULT 'pending',
    attempts    INTEGER NOT NULL DEFAULT 0,
    -- Rises with every claim; whatever applies the job names it.
    token       INTEGER NOT NULL DEFAULT 0,
    -- By the clock of the database, like the lease.
    run_at      INTEGER NOT NULL,
    lease_until INTEGER NOT NULL DEFAULT 0,
    last_error  TEXT,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- At most one job of a kind waits for a session, or for the owner.
CREATE UNIQUE INDEX jobs_pending ON jobs (tenant_id, owner_id, ifnull(session_id, x''), kind) WHERE state = 'pending';
CREATE INDEX jobs_by_session ON jobs (tenant_id, owner_id, session_id);
-- Jobs are governed by tenant, without their owner.
CREATE UNIQUE INDEX jobs_by_id ON jobs (tenant_id, id);
CREATE INDEX jobs_by_creation ON jobs (tenant_id, created_at, id);
-- Workers serve all tenants; these two are their queue.
CREATE INDEX jobs_due ON jobs (run_at, id) WHERE state = 'pending';
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE state = 'running';
