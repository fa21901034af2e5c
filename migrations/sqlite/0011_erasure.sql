-- Forgetting and erasing leave nothing behind.

-- A turn that shows memories looks, at its end, whether they were removed meanwhile.
CREATE INDEX memory_removals_by_memory ON memory_removals (tenant_id, owner_id, memory_id);

-- An owner's turns that have not ended are few; those that have shown memories are looked through when one is forgotten.
CREATE INDEX turns_open ON turns (tenant_id, owner_id, created_at DESC, id DESC)
    WHERE status IN ('queued', 'running', 'awaiting_approval');
CREATE INDEX turns_showing ON turns (tenant_id, owner_id) WHERE recalled <> '[]';

-- What is kept of an erasure: whose it was as a number that is never given again, when, and how much.
CREATE TABLE erasures (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    id        BLOB    NOT NULL,
    erased_at INTEGER NOT NULL,
    removed   TEXT    NOT NULL,
    -- The file was rewritten since: it holds no byte of what was removed.
    rewritten INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, owner_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX erasures_unfinished ON erasures (rewritten) WHERE rewritten = 0;
