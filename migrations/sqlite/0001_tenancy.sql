-- Whom data belongs to. Every other table carries these two columns first in its keys.
--
-- Conventions of this schema: UUIDs are 16-byte blobs, times are microseconds since 1970 in UTC, JSON is text. Tables with small rows
-- are WITHOUT ROWID, so that their primary key is the table; tables with texts are not, since long rows make such a tree deep.
CREATE TABLE owners (
    tenant_id   BLOB    NOT NULL,
    owner_id    INTEGER NOT NULL,
    user_name   TEXT    NOT NULL,
    -- Rises with every erasure, so that work decided before it is refused.
    erase_epoch INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX owners_by_name ON owners (tenant_id, user_name);
