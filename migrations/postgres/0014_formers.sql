-- What edited memories said before: memories of their own, which are kept and lost with the edited one. Without a reference to that one: when it
-- is gone, it is looked up here what goes with it.

CREATE TABLE memory_formers (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    former_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, former_id),
    FOREIGN KEY (tenant_id, owner_id, former_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_formers_by_former ON memory_formers (tenant_id, owner_id, former_id);
ALTER TABLE memory_formers ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_formers TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_formers TO tidemark_app;
