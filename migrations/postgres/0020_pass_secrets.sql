-- What stands for a token of an identity provider, in a URL or a cookie, is signed with a secret of its tenant's: nothing is kept of such a
-- token with which it could be. Made when the first is signed; taking a row out ends all that were signed with it.
CREATE TABLE pass_secrets (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    secret bytea NOT NULL CHECK (octet_length(secret) = 32),
    created_at timestamptz NOT NULL
);
ALTER TABLE pass_secrets ALTER COLUMN secret SET STATISTICS 0;

ALTER TABLE pass_secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pass_secrets TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT ON pass_secrets TO tidemark_app;
