-- The API key that a turn was asked for with, so that a key's open turns can be counted. None for turns from before, and where no key is needed.
-- No reference: a key may go before its turns do.
ALTER TABLE turns ADD COLUMN key_id BLOB;
