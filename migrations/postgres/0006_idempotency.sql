-- Which request made what, so that a repeated one yields the same resource.

CREATE TABLE idempotency (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    operation text NOT NULL,
    key text NOT NULL,
    body_hash bytea NOT NULL,
    -- What was made, in the order of the request; never the answer itself.
    resource_ids uuid[] NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, operation, key),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
);
CREATE INDEX idempotency_by_creation ON idempotency (tenant_id, owner_id, created_at);

ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON idempotency TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency TO tidemark_app;
