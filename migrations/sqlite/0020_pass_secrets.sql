-- What stands for a token of an identity provider, in a URL or a cookie, is signed with a secret of its tenant's: nothing is kept of such a
-- token with which it could be. Made when the first is signed; taking a row out ends all that were signed with it.
CREATE TABLE pass_secrets (
    tenant_id  BLOB    NOT NULL PRIMARY KEY REFERENCES tenants (tenant_id),
    secret     BLOB    NOT NULL CHECK (length(secret) = 32),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
