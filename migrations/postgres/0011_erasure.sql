-- Forgetting and erasing leave nothing behind.

-- A turn that shows memories looks, at its end, whether they were removed meanwhile.
CREATE INDEX memory_removals_by_memory ON memory_removals (tenant_id, owner_id, memory_id);

-- What is kept of an erasure: whose it was as a number that is never given again, when, and how much.
CREATE TABLE erasures (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    erased_at timestamptz NOT NULL,
    removed jsonb NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id)
);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON erasures TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON erasures TO tidemark_app;

-- Statistics of a column hold samples of it, which outlive the rows. No plan needs any of a text.
ALTER TABLE owners ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE sessions ALTER COLUMN title SET STATISTICS 0, ALTER COLUMN labels SET STATISTICS 0;
ALTER TABLE messages
    ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN tool_calls SET STATISTICS 0,
    ALTER COLUMN tool_call_id SET STATISTICS 0;
ALTER TABLE turns
    ALTER COLUMN input SET STATISTICS 0, ALTER COLUMN text SET STATISTICS 0, ALTER COLUMN recalled SET STATISTICS 0,
    ALTER COLUMN problem SET STATISTICS 0, ALTER COLUMN options SET STATISTICS 0;
ALTER TABLE memories
    ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN speaker SET STATISTICS 0, ALTER COLUMN key SET STATISTICS 0,
    ALTER COLUMN identity SET STATISTICS 0, ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE idempotency ALTER COLUMN key SET STATISTICS 0, ALTER COLUMN operation SET STATISTICS 0;
ALTER TABLE jobs ALTER COLUMN last_error SET STATISTICS 0;
