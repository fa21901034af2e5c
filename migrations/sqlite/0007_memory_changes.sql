-- How an index outside the database is kept current: each change of an owner's memories has a number, each memory carries the number of the
-- change that wrote it last, and each removed one leaves its id with the number.
ALTER TABLE owners ADD COLUMN memory_change INTEGER NOT NULL DEFAULT 0;
-- The change with which all memories were erased last. What was removed up to it is not listed: whoever knows less starts anew.
ALTER TABLE owners ADD COLUMN memory_floor INTEGER NOT NULL DEFAULT 0;

CREATE INDEX memories_by_change ON memories (tenant_id, owner_id, change, id);

CREATE TABLE memory_removals (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    change    INTEGER NOT NULL,
    memory_id BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, change, memory_id)
) STRICT, WITHOUT ROWID;
