-- The outbox of derived work.

CREATE TABLE jobs (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    -- None for work on all that the owner has.
    session_id uuid,
    kind text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'running', 'failed')),
    attempts integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL,
    lease_until timestamptz,
    -- Rises with every claim: what an earlier claim decided is not applied.
    token bigint NOT NULL DEFAULT 0,
    last_error text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    CHECK ((state = 'running') = (lease_until IS NOT NULL))
);
-- At most one of a kind is pending for a session, or for the owner (A13).
CREATE UNIQUE INDEX jobs_pending ON jobs (tenant_id, owner_id, session_id, kind) NULLS NOT DISTINCT WHERE state = 'pending';
CREATE INDEX jobs_by_session ON jobs (tenant_id, owner_id, session_id);
-- Jobs are governed by tenant.
CREATE INDEX jobs_by_creation ON jobs (tenant_id, created_at DESC, id DESC);
CREATE INDEX jobs_by_id ON jobs (tenant_id, id);
-- For claims, over all tenants.
CREATE INDEX jobs_due ON jobs (run_at, id) WHERE state IN ('pending', 'running');

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON jobs TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO tidemark_app;

CREATE FUNCTION tidemark_claim_job(kinds text[], lease interval)
RETURNS TABLE (tenant_id uuid, owner_id bigint, job_id uuid)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    -- Materialized, or a plan may ask for the one due job once for each job there is, and claim as many.
    WITH due AS MATERIALIZED (
        SELECT d.tenant_id, d.owner_id, d.id
        FROM jobs d
        WHERE d.run_at <= statement_timestamp() AND d.kind = ANY (kinds)
            AND (d.state = 'pending' OR (d.state = 'running' AND d.lease_until <= statement_timestamp()))
            -- Work that may wait for a model is done by one worker a session, or it would be asked the same twice.
            AND NOT (d.kind IN ('consolidate', 'review_memory', 'extract') AND EXISTS (
                SELECT FROM jobs r
                WHERE r.tenant_id = d.tenant_id AND r.owner_id = d.owner_id AND r.session_id = d.session_id
                    AND r.state = 'running' AND r.lease_until > statement_timestamp()
                    AND r.kind IN ('consolidate', 'review_memory', 'extract') AND (r.kind = 'extract') = (d.kind = 'extract')
            ))
        ORDER BY d.run_at, d.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    UPDATE jobs j
    SET state = 'running', attempts = j.attempts + 1, token = j.token + 1, lease_until = clock_timestamp() + lease
    FROM due
    WHERE j.tenant_id = due.tenant_id AND j.owner_id = due.owner_id AND j.id = due.id
    RETURNING j.tenant_id, j.owner_id, j.id
$$;
REVOKE ALL ON FUNCTION tidemark_claim_job(text[], interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_claim_job(text[], interval) TO tidemark_app;

CREATE FUNCTION tidemark_count_jobs() RETURNS TABLE (kind text, state text, number bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT j.kind, j.state, count(*) FROM jobs j GROUP BY j.kind, j.state $$;
REVOKE ALL ON FUNCTION tidemark_count_jobs() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_count_jobs() TO tidemark_app;
