-- What a memory said before is lost with it, or stays to be looked up, as the deletion has it; a reference would take it away before.

CREATE TABLE free_formers (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    memory_id BLOB    NOT NULL,
    former_id BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, former_id)
) STRICT;

INSERT INTO free_formers SELECT tenant_id, owner_id, memory_id, former_id FROM memory_formers;
DROP TABLE memory_formers;
ALTER TABLE free_formers RENAME TO memory_formers;
CREATE INDEX memory_formers_by_former ON memory_formers (tenant_id, owner_id, former_id);
