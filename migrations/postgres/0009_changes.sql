-- What was done to memories, so that each change can be listed and undone as a whole, and how what is said of a key is found.

CREATE TABLE changes (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    -- The number of the owner's newest change of memories when it was made: what is later than what.
    number bigint NOT NULL,
    kind text NOT NULL,
    -- Stays when the session is deleted and its memories are kept.
    session_id uuid,
    -- Of a consolidation the boundary before and after, of an import the number of the last message before it and of its last.
    from_seq bigint,
    to_seq bigint,
    created_at timestamptz NOT NULL,
    reverted_by uuid,
    reverts uuid,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners,
    CHECK ((from_seq IS NULL) = (to_seq IS NULL))
);
CREATE INDEX changes_by_creation ON changes (tenant_id, owner_id, created_at DESC, id DESC);
CREATE INDEX changes_by_session ON changes (tenant_id, owner_id, session_id, created_at DESC, id DESC);

CREATE TABLE change_items (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    change_id uuid NOT NULL,
    -- Stays when the memory is gone; its values go with it.
    memory_id uuid NOT NULL,
    op text NOT NULL,
    version bigint NOT NULL,
    -- The values that the memory lost, and those in their place, by name.
    before_values jsonb NOT NULL,
    after_values jsonb NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, change_id, memory_id),
    FOREIGN KEY (tenant_id, owner_id, change_id) REFERENCES changes ON DELETE CASCADE
);
-- What ANALYZE keeps would outlive the rows.
ALTER TABLE change_items ALTER COLUMN before_values SET STATISTICS 0, ALTER COLUMN after_values SET STATISTICS 0;
CREATE INDEX change_items_by_memory ON change_items (tenant_id, owner_id, memory_id);

-- Whoever says something of a key reads what else is said of it.
CREATE INDEX memories_by_key ON memories (tenant_id, owner_id, key, coalesce(valid_to, 'infinity')) WHERE key IS NOT NULL;
-- Whoever removes a memory looks for what it had ended.
CREATE INDEX memories_by_successor ON memories (tenant_id, owner_id, superseded_by) WHERE superseded_by IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['changes', 'change_items'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO tidemark_app USING (tenant_id = (SELECT tidemark_tenant()))'
            || ' WITH CHECK (tenant_id = (SELECT tidemark_tenant()))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO tidemark_app', name);
    END LOOP;
END
$$;
