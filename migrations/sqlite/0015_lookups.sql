-- What was found by looking through all that an owner has.

-- By whom an owner has memories: each name once.
CREATE INDEX memories_by_speaker ON memories (tenant_id, owner_id, speaker) WHERE speaker IS NOT NULL;
-- The keys that are in use, newest first.
CREATE INDEX memories_stated ON memories (tenant_id, owner_id, created_at, id)
    WHERE fact_key IS NOT NULL AND state = 'current' AND layer = 'semantic';
