-- Whose data it is, and who may touch it.
--
-- Row-level security does not bind superusers and owners of tables. So the program works as a role of its own, which owns nothing and
-- sees the rows of the tenant that its transaction names. What must be found before a tenant is known goes through functions that run as
-- the migrating role and give out ids and numbers only.

-- Roles belong to the whole cluster: other databases may create this one at the same moment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tidemark_app') THEN
        CREATE ROLE tidemark_app NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL;
END
$$;

-- So that a role that is no superuser can take it on.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'tidemark_app', 'SET') THEN
        GRANT tidemark_app TO CURRENT_USER;
    END IF;
EXCEPTION
    WHEN unique_violation THEN
        NULL;
END
$$;

GRANT USAGE ON SCHEMA public TO tidemark_app;

-- An unset parameter is NULL at first and empty after a transaction has set it: neither is a tenant, and neither sees anything.
CREATE FUNCTION tidemark_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT nullif(current_setting('tidemark.tenant', true), '')::uuid $$;

CREATE TABLE owners (
    tenant_id uuid NOT NULL,
    owner_id bigint GENERATED ALWAYS AS IDENTITY,
    name text COLLATE "C" NOT NULL,
    -- Rises with every erasure, so that what was decided before it is not applied after it.
    erase_epoch bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, owner_id),
    UNIQUE (tenant_id, name)
);
ALTER TABLE owners ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON owners TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON owners TO tidemark_app;

-- The record of migrations is nobody's data: no policy, no grant.
ALTER TABLE _sqlx_migrations ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION tidemark_applied_migrations() RETURNS TABLE (version bigint, success boolean, checksum bytea)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT m.version, m.success, m.checksum FROM _sqlx_migrations m ORDER BY m.version $$;
REVOKE ALL ON FUNCTION tidemark_applied_migrations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_applied_migrations() TO tidemark_app;
