-- Who may ask: tenants by the operator's names for them, and their API keys.
--
-- A name or a key is looked up before a tenant is known. As everywhere, what does that is a function of the migrating role that gives out
-- ids only: the id of the tenant, for which the row is then read like any other. So nobody who works as tidemark_app sees a key without its
-- id, nor keys of two tenants at once.

CREATE TABLE tenants (
    tenant_id uuid PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON tenants TO tidemark_app;

-- Of an installation that has no other, and the operator's own in one that has.
INSERT INTO tenants (tenant_id, name, created_at)
VALUES ('00000000-0000-0000-0000-000000000000', 'default', clock_timestamp());

CREATE TABLE api_keys (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL UNIQUE,
    -- SHA-256 of the key as text. The secret itself is stored nowhere.
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    name text,
    scopes text NOT NULL,
    -- The one user that it is good for.
    user_name text COLLATE "C",
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    -- The key that followed it.
    successor uuid,
    PRIMARY KEY (tenant_id, id)
);
-- An erased user's keys go with the user.
CREATE INDEX api_keys_by_user ON api_keys (tenant_id, user_name) WHERE user_name IS NOT NULL;
ALTER TABLE api_keys ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN user_name SET STATISTICS 0, ALTER COLUMN hash SET STATISTICS 0;

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys TO tidemark_app;

CREATE FUNCTION tidemark_key_tenant(key uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT k.tenant_id FROM api_keys k WHERE k.id = key $$;
REVOKE ALL ON FUNCTION tidemark_key_tenant(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_key_tenant(uuid) TO tidemark_app;

CREATE FUNCTION tidemark_tenant_named(wanted text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT t.tenant_id FROM tenants t WHERE t.name = wanted COLLATE "C" $$;
REVOKE ALL ON FUNCTION tidemark_tenant_named(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_tenant_named(text) TO tidemark_app;

CREATE FUNCTION tidemark_tenants() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT t.tenant_id FROM tenants t ORDER BY t.name $$;
REVOKE ALL ON FUNCTION tidemark_tenants() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_tenants() TO tidemark_app;
