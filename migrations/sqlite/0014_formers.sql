-- What edited memories said before: memories of their own, which are kept and lost with the edited one. Without a reference to that one: when it
-- is gone, it is looked up here what goes with it.

CREATE TABLE memory_formers (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    memory_id BLOB    NOT NULL,
    former_id BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, former_id),
    FOREIGN KEY (tenant_id, owner_id, former_id) REFERENCES memories ON DELETE CASCADE
) STRICT;

CREATE INDEX memory_formers_by_former ON memory_formers (tenant_id, owner_id, former_id);
