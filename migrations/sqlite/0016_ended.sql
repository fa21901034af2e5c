-- When a memory ended for good. `valid_to` says until when it holds as things stand: what is said later of its key may shorten that, and is
-- taken back again.
ALTER TABLE memories ADD COLUMN ended_at INTEGER;
-- So far it was what ended without a successor.
UPDATE memories SET ended_at = valid_to WHERE valid_to IS NOT NULL AND superseded_by IS NULL;
