-- Forgetting and erasing leave nothing behind.

-- A turn that shows memories looks, at its end, whether they were removed meanwhile.
CREATE INDEX memory_removals_by_memory ON memory_removals (tenant_id, owner_id, memory_id);
