-- The first of the keys that one was rotated from: they share its rate. Null for one that was rotated from none.
ALTER TABLE api_keys ADD COLUMN first_key_id TEXT;
