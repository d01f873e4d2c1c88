-- What lets others in ends with the key that made it: an exposed port names the first key of its maker's line.
ALTER TABLE ports ADD COLUMN ends_with TEXT;
CREATE INDEX api_keys_by_first ON api_keys (first_key_id);
-- A public SSH key lasts no longer than the API key that added it. One that was rotated ends early; its successor does not.
UPDATE ssh_keys SET expires_at = (SELECT expires_at FROM api_keys WHERE key_id = created_by_id)
WHERE created_by_type = 'key' AND created_by_id IN (
  SELECT key_id FROM api_keys
  WHERE replaced_by IS NULL AND expires_at IS NOT NULL AND expires_at < ifnull(ssh_keys.expires_at, '9999')
);
