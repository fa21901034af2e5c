-- What a memory said before is lost with it, or stays to be looked up, as the deletion has it; a reference would take it away before.

ALTER TABLE memory_formers DROP CONSTRAINT memory_formers_tenant_id_owner_id_former_id_fkey;
