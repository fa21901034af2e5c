-- Requests and their answers.

CREATE TABLE turns (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    session_id uuid NOT NULL,
    status text NOT NULL CHECK (
        status IN ('queued', 'running', 'awaiting_approval', 'completed', 'failed', 'cancelled', 'interrupted')
    ),
    input text NOT NULL,
    memory text NOT NULL CHECK (memory IN ('on', 'read_only', 'off')),
    -- What the request set for this turn alone.
    options jsonb NOT NULL DEFAULT '{}',
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    events_reserved bigint NOT NULL DEFAULT 0,
    -- Number of the user's message; none before the start.
    first_seq bigint,
    terminal_seq bigint,
    text text,
    message_id uuid,
    finish_reason text,
    usage jsonb,
    recalled jsonb NOT NULL DEFAULT '[]',
    problem jsonb,
    cancel_requested boolean NOT NULL DEFAULT false,
    -- The use of the memories it has shown was counted.
    use_counted boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    -- A closed turn has its terminal number, an open one has none.
    CHECK ((terminal_seq IS NULL) = (status IN ('queued', 'running', 'awaiting_approval'))),
    CHECK ((ended_at IS NULL) = (status IN ('queued', 'running', 'awaiting_approval'))),
    -- A running turn belongs to a lease.
    CHECK (status NOT IN ('running', 'awaiting_approval') OR (lease_until IS NOT NULL AND first_seq IS NOT NULL AND fence > 0))
);
CREATE INDEX turns_by_session ON turns (tenant_id, owner_id, session_id, created_at, id);
-- The queue of a session, and how many turns of an owner are open.
CREATE INDEX turns_open ON turns (tenant_id, owner_id, session_id, created_at, id)
    WHERE status IN ('queued', 'running', 'awaiting_approval');
-- One turn of a session runs at a time.
CREATE UNIQUE INDEX turns_running ON turns (tenant_id, owner_id, session_id)
    WHERE status IN ('running', 'awaiting_approval');
CREATE INDEX turns_use_uncounted ON turns (tenant_id, owner_id, session_id)
    WHERE status = 'completed' AND NOT use_counted;
-- For the two searches over all tenants below.
CREATE INDEX turns_by_lease ON turns (lease_until) WHERE status IN ('running', 'awaiting_approval');
CREATE INDEX turns_waiting ON turns (created_at) WHERE status = 'queued';

ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON turns TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON turns TO tidemark_app;

CREATE FUNCTION tidemark_lapsed_turns(wanted bigint)
RETURNS TABLE (tenant_id uuid, owner_id bigint, session_id uuid, turn_id uuid, fence bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.tenant_id, t.owner_id, t.session_id, t.id, t.fence
    FROM turns t
    WHERE t.status IN ('running', 'awaiting_approval') AND t.lease_until <= statement_timestamp()
    ORDER BY t.lease_until
    LIMIT wanted
$$;
REVOKE ALL ON FUNCTION tidemark_lapsed_turns(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_lapsed_turns(bigint) TO tidemark_app;

CREATE FUNCTION tidemark_waiting_sessions(wanted bigint)
RETURNS TABLE (tenant_id uuid, owner_id bigint, session_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT w.tenant_id, w.owner_id, w.session_id
    FROM turns w
    WHERE w.status = 'queued' AND NOT EXISTS (
        SELECT FROM turns r
        WHERE r.tenant_id = w.tenant_id AND r.owner_id = w.owner_id AND r.session_id = w.session_id
            AND r.status IN ('running', 'awaiting_approval')
    )
    GROUP BY w.tenant_id, w.owner_id, w.session_id
    ORDER BY min(w.created_at)
    LIMIT wanted
$$;
REVOKE ALL ON FUNCTION tidemark_waiting_sessions(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_waiting_sessions(bigint) TO tidemark_app;
