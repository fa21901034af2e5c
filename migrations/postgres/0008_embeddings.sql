-- Vectors of memories, kept for each model, so that a change of model loses nothing while memories are embedded anew.

-- Models belong to the installation, and their names are no tenant's data: known through functions alone.
CREATE TABLE embedding_models (
    model text COLLATE "C" PRIMARY KEY,
    dimension integer NOT NULL CHECK (dimension > 0),
    first_seen timestamptz NOT NULL,
    -- Rises when another model than before is adopted: the highest is the one that memories are to be embedded by.
    adoption bigint NOT NULL
);
ALTER TABLE embedding_models ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION tidemark_embedding_dimension(asked text) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT m.dimension FROM embedding_models m WHERE m.model = asked $$;

CREATE FUNCTION tidemark_adopt_embedding_model(adopted text, its_dimension integer, at timestamptz) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    newest bigint;
    known integer;
BEGIN
    -- Replicas adopt one after the other.
    LOCK TABLE embedding_models IN SHARE ROW EXCLUSIVE MODE;
    SELECT coalesce(max(m.adoption), 0) INTO newest FROM embedding_models m;
    INSERT INTO embedding_models AS m (model, dimension, first_seen, adoption)
    VALUES (adopted, its_dimension, at, newest + 1)
    ON CONFLICT (model) DO UPDATE SET adoption = CASE WHEN m.adoption = newest THEN newest ELSE newest + 1 END
        WHERE m.dimension = its_dimension;
    SELECT m.dimension INTO known FROM embedding_models m WHERE m.model = adopted;
    RETURN known;
END
$$;

CREATE TABLE memory_vectors (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    model text COLLATE "C" NOT NULL,
    -- The number of the owner's change that wrote it.
    change bigint NOT NULL,
    -- 32-bit numbers, the lowest byte first; empty where the model does not accept the text.
    vec bytea NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, memory_id, model),
    FOREIGN KEY (tenant_id, owner_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
-- Numbers do not compress, and statistics would hold some that outlive their rows.
ALTER TABLE memory_vectors ALTER COLUMN vec SET STORAGE EXTERNAL, ALTER COLUMN vec SET STATISTICS 0;
CREATE INDEX memory_vectors_by_change ON memory_vectors (tenant_id, owner_id, change, memory_id);

ALTER TABLE memory_vectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_vectors TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_vectors TO tidemark_app;

-- Up to which change of the owner's memories a model has been asked about all of them. Without a row it is to be found out.
CREATE TABLE embedding_marks (
    tenant_id uuid NOT NULL,
    owner_id bigint NOT NULL,
    model text COLLATE "C" NOT NULL,
    change bigint NOT NULL,
    PRIMARY KEY (tenant_id, owner_id, model),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES owners ON DELETE CASCADE
);
ALTER TABLE embedding_marks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON embedding_marks TO tidemark_app
    USING (tenant_id = (SELECT tidemark_tenant()))
    WITH CHECK (tenant_id = (SELECT tidemark_tenant()));
GRANT SELECT, INSERT, UPDATE, DELETE ON embedding_marks TO tidemark_app;

-- The models whose vectors are to go once `kept` has embedded everything. Their names are no tenant's data.
CREATE FUNCTION tidemark_earlier_embedding_models(kept text) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT e.model FROM embedding_models e
    WHERE e.adoption < (SELECT k.adoption FROM embedding_models k WHERE k.model = kept)
$$;

CREATE FUNCTION tidemark_owners_to_embed(asked text, after_tenant uuid, after_owner bigint, most integer)
RETURNS TABLE (tenant_id uuid, owner_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT o.tenant_id, o.owner_id FROM owners o
    WHERE (o.tenant_id, o.owner_id) > (after_tenant, after_owner)
        AND (
            EXISTS (
                SELECT FROM memories m
                WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.owner_id
                    AND m.change > coalesce((
                        SELECT k.change FROM embedding_marks k
                        WHERE k.tenant_id = o.tenant_id AND k.owner_id = o.owner_id AND k.model = asked
                    ), 0)
                    AND NOT EXISTS (
                    SELECT FROM memory_vectors v
                    WHERE v.tenant_id = m.tenant_id AND v.owner_id = m.owner_id AND v.memory_id = m.id AND v.model = asked
                )
            )
            OR EXISTS (
                SELECT FROM memory_vectors v
                WHERE v.tenant_id = o.tenant_id AND v.owner_id = o.owner_id
                    AND v.model IN (SELECT tidemark_earlier_embedding_models(asked))
            )
        )
        AND NOT EXISTS (
            SELECT FROM jobs j WHERE j.tenant_id = o.tenant_id AND j.owner_id = o.owner_id AND j.kind = 'embed'
        )
    ORDER BY o.tenant_id, o.owner_id
    LIMIT most
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'tidemark_embedding_dimension(text)', 'tidemark_adopt_embedding_model(text, integer, timestamptz)',
        'tidemark_earlier_embedding_models(text)', 'tidemark_owners_to_embed(text, uuid, bigint, integer)'
    ] LOOP
        EXECUTE 'REVOKE ALL ON FUNCTION ' || name || ' FROM PUBLIC';
        EXECUTE 'GRANT EXECUTE ON FUNCTION ' || name || ' TO tidemark_app';
    END LOOP;
END
$$;
