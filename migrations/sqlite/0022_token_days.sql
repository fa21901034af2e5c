-- Tokens that turns have used, by the day of UTC on which they ended: what limits of tokens a day are held against. Counts alone. There is no
-- reference to the owner: an erasure adds the owner's rows to those of nobody, number 0, so that the sums of tenant and key stay.
CREATE TABLE token_days (
    tenant_id BLOB    NOT NULL,
    owner_id  INTEGER NOT NULL,
    -- Since 1970.
    day       INTEGER NOT NULL,
    -- Zeros where no key was asked for.
    key_id    BLOB    NOT NULL,
    tokens    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, day, key_id)
) STRICT, WITHOUT ROWID;

-- What a tenant and its keys have used, and the days that are over.
CREATE INDEX token_days_by_day ON token_days (tenant_id, day, key_id);
