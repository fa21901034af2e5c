-- What waits for confirmation is known by its words too: what is said again and again waits once.
CREATE INDEX memories_waiting ON memories (tenant_id, owner_id, fingerprint) WHERE state = 'quarantined';
