-- What is remembered, what it was learned from, and what it is found by.

CREATE TABLE memories (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    id uuid NOT NULL,
    content text NOT NULL,
    -- Who said it, where that was named.
    speaker text,
    scope text NOT NULL,
    kind text NOT NULL,
    layer text NOT NULL,
    state text NOT NULL,
    importance smallint NOT NULL CHECK (importance BETWEEN 1 AND 5),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    trust text NOT NULL,
    pinned boolean NOT NULL,
    key text,
    -- Stays when the session is deleted and its memories are kept.
    session_id uuid,
    identity text NOT NULL,
    -- SHA-256 of the identity, which may be too long for an index.
    identity_hash bytea NOT NULL,
    -- What it is found by: its terms with their counts, in a form of the program's own.
    terms bytea NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    superseded_by uuid,
    expires_at timestamptz,
    created_at timestamptz NOT NULL,
    access_count bigint NOT NULL,
    last_access timestamptz NOT NULL,
    version bigint NOT NULL,
    -- The number of the owner's change that wrote it last.
    change bigint NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
);
CREATE INDEX memories_by_creation ON memories (tenant_id, owner_id, created_at DESC, id DESC);
CREATE INDEX memories_preferences ON memories (tenant_id, owner_id, valid_from DESC, id DESC)
    WHERE state = 'current' AND scope = 'user_profile' AND kind = 'preference';
CREATE INDEX memories_by_identity ON memories (tenant_id, owner_id, identity_hash) WHERE state = 'current';
CREATE INDEX memories_expiring ON memories (tenant_id, owner_id, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE memory_sources (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    message_id uuid NOT NULL,
    session_id uuid NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, message_id),
    FOREIGN KEY (tenant_id, owner_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_sources_by_message ON memory_sources (tenant_id, owner_id, message_id);
CREATE INDEX memory_sources_by_session ON memory_sources (tenant_id, owner_id, session_id, seq);

-- What was forgotten and must not be learned again: an id, or what one message said. No text of it is kept.
CREATE TABLE tombstones (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    -- A memory's id with an empty hash, or a message's id with the hash of the identity that it taught.
    subject_id uuid NOT NULL,
    identity_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, subject_id, identity_hash),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memories', 'memory_sources', 'tombstones'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I TO tidemark_app USING (tenant_id = (SELECT tidemark_tenant()))'
            || ' WITH CHECK (tenant_id = (SELECT tidemark_tenant()))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO tidemark_app', name);
    END LOOP;
END
$$;
