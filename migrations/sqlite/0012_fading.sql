-- When the confidence of a memory comes to the floor: the sweep that archives what has faded looks at nothing else.
ALTER TABLE memories ADD COLUMN fades_at INTEGER;
-- A memory may fade later than this says, never sooner. Of what is there already the first sweep finds out.
UPDATE memories SET fades_at = last_access;
CREATE INDEX memories_fading ON memories (fades_at, id, tenant_id, owner_id) WHERE state = 'current' AND fades_at IS NOT NULL;

-- What was archived is known again when it is said again.
DROP INDEX memories_by_identity;
CREATE INDEX memories_by_identity ON memories (tenant_id, owner_id, fingerprint) WHERE state IN ('current', 'archived');
