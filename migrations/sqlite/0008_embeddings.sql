-- Vectors of memories, kept for each model, so that a change of model loses nothing while memories are embedded anew.

CREATE TABLE embedding_models (
    model      TEXT    NOT NULL PRIMARY KEY,
    dimension  INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    -- Rises when another model than before is adopted: the highest is the one that memories are to be embedded by.
    adoption   INTEGER NOT NULL
) STRICT;

CREATE TABLE memory_vectors (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    memory_id BLOB    NOT NULL,
    model     TEXT    NOT NULL,
    -- The number of the owner's change that wrote it.
    change    INTEGER NOT NULL,
    -- 32-bit numbers, the lowest byte first; empty where the model does not accept the text.
    vec       BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, model),
    FOREIGN KEY (tenant_id, owner_id, memory_id) REFERENCES memories ON DELETE CASCADE
) STRICT;

CREATE INDEX memory_vectors_by_change ON memory_vectors (tenant_id, owner_id, change, memory_id);

-- Up to which change of the owner's memories a model has been asked about all of them. Without a row it is to be found out.
CREATE TABLE embedding_marks (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    model     TEXT    NOT NULL,
    change    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, model),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
