-- How an index outside the database is kept current: each change of an owner's memories has a number, each memory carries the number of the
-- change that wrote it last, and each removed one leaves its id with the number.

ALTER TABLE owners
    ADD COLUMN memory_change bigint NOT NULL DEFAULT 0,
    -- The change with which all memories were erased last. What was removed up to it is not listed: whoever knows less starts anew.
    ADD COLUMN memory_floor bigint NOT NULL DEFAULT 0;

CREATE INDEX memories_by_change ON memories (tenant_id, owner_id, change, id);

CREATE TABLE memory_removals (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    change bigint NOT NULL,
    memory_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, change, memory_id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners
);
ALTER TABLE memory_removals ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_removals TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_removals TO tidemark_app;
