-- Tokens that turns have used, by the day of UTC on which they ended: what limits of tokens a day are held against. Counts alone. There is no
-- reference to the owner: an erasure adds the owner's rows to those of nobody, number 0, so that the sums of tenant and key stay.
CREATE TABLE token_days (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    day date NOT NULL,
    -- Zeros where no key was asked for.
    key_id uuid NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, day, key_id)
);
-- What a tenant and its keys have used, and the days that are over.
CREATE INDEX token_days_by_day ON token_days (tenant_id, day, key_id);

ALTER TABLE token_days ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON token_days TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON token_days TO tidemark_app;
