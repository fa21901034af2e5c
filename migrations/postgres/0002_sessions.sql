-- Conversations and what was said in them.

CREATE TABLE sessions (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    title text,
    labels text[] NOT NULL,
    channel text NOT NULL,
    memory text NOT NULL CHECK (memory IN ('on', 'read_only', 'off')),
    message_count bigint NOT NULL DEFAULT 0,
    last_consolidated bigint NOT NULL DEFAULT 0,
    indexed_seq bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners,
    CHECK (last_consolidated BETWEEN 0 AND message_count),
    CHECK (indexed_seq BETWEEN 0 AND message_count)
);
-- The list, newest first.
CREATE INDEX sessions_by_update ON sessions (tenant_id, owner_id, updated_at DESC, id DESC);
-- What recall must cover because it is committed but not yet indexed.
CREATE INDEX sessions_unindexed ON sessions (tenant_id, owner_id, id) WHERE indexed_seq < message_count;

CREATE TABLE messages (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    session_id uuid NOT NULL,
    turn_id uuid,
    seq bigint NOT NULL CHECK (seq > 0),
    role text NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content text NOT NULL,
    name text,
    tool_calls jsonb NOT NULL,
    tool_call_id text,
    partial boolean NOT NULL,
    learnable boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    UNIQUE (tenant_id, owner_id, session_id, seq),
    FOREIGN KEY (tenant_id, owner_id, session_id) REFERENCES sessions ON DELETE CASCADE
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'messages'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO tidemark_app USING (tenant_id = (SELECT tidemark_tenant()))'
            || ' WITH CHECK (tenant_id = (SELECT tidemark_tenant()))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO tidemark_app', name);
    END LOOP;
END
$$;
