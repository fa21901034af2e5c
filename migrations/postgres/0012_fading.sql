-- When the confidence of a memory comes to the floor: the sweep that archives what has faded looks at nothing else.

ALTER TABLE memories ADD COLUMN fades_at timestamptz;
-- A memory may fade later than this says, never sooner. Of what is there already the first sweep finds out.
UPDATE memories SET fades_at = last_access;
CREATE INDEX memories_fading ON memories (fades_at, id) INCLUDE (tenant_id, owner_id) WHERE state = 'current' AND fades_at IS NOT NULL;

-- What was archived is known again when it is said again.
DROP INDEX memories_by_identity;
CREATE INDEX memories_by_identity ON memories (tenant_id, owner_id, identity_hash) WHERE state IN ('current', 'archived');

CREATE FUNCTION tidemark_fading_memories(due timestamptz, after_at timestamptz, after_id uuid, wanted bigint)
RETURNS TABLE (tenant_id uuid, owner_id bigint, memory_id uuid, fades_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT m.tenant_id, m.owner_id, m.id, m.fades_at
    FROM memories m
    WHERE m.state = 'current' AND m.fades_at <= due AND (m.fades_at, m.id) > (after_at, after_id)
        AND (m.expires_at IS NULL OR m.expires_at > due)
    ORDER BY m.fades_at, m.id LIMIT wanted
$$;
REVOKE ALL ON FUNCTION tidemark_fading_memories(timestamptz, timestamptz, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidemark_fading_memories(timestamptz, timestamptz, uuid, bigint) TO tidemark_app;
