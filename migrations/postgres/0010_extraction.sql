-- Consolidated messages that a model has yet to read: nothing is lost when its answer is bad or does not come.

CREATE TABLE pending_extractions (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    session_id uuid NOT NULL,
    -- The messages behind this number, up to and with to_seq.
    from_seq bigint NOT NULL CHECK (from_seq >= 0),
    to_seq bigint NOT NULL CHECK (to_seq > from_seq),
    attempts integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, session_id, from_seq),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
);

ALTER TABLE pending_extractions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pending_extractions TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON pending_extractions TO tidemark_app;

-- The sweep for sessions with old messages below the threshold; few have any behind the boundary for long.
CREATE INDEX sessions_unconsolidated ON sessions (tenant_id, owner_id, id) WHERE last_consolidated < message_count;

CREATE FUNCTION tidemark_sessions_to_consolidate(said_before timestamptz, wanted bigint)
RETURNS TABLE (tenant_id uuid, owner_id bigint, session_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT s.tenant_id, s.owner_id, s.id
    FROM sessions s
    WHERE s.last_consolidated < s.message_count
        -- Where no boundary may stand there is nothing to do, now or at the next sweep.
        AND EXISTS (
            SELECT FROM messages m
            WHERE m.tenant_id = s.tenant_id AND m.owner_id = s.owner_id AND m.session_id = s.id AND m.seq > s.last_consolidated
                AND m.role <> 'tool' AND m.tool_calls = '[]' AND m.created_at <= said_before
        )
        AND NOT EXISTS (
            SELECT FROM turns t
            WHERE t.tenant_id = s.tenant_id AND t.owner_id = s.owner_id AND t.session_id = s.id
                AND t.status IN ('running', 'awaiting_approval')
        )
        AND NOT EXISTS (
            SELECT FROM jobs j
            WHERE j.tenant_id = s.tenant_id AND j.owner_id = s.owner_id AND j.session_id = s.id AND j.kind = 'consolidate'
        )
    LIMIT wanted
$$;
REVOKE ALL ON FUNCTION tidemark_sessions_to_consolidate(timestamptz, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_sessions_to_consolidate(timestamptz, bigint) TO tidemark_app;
