-- Keys that keys make: who made them, what took their place, and when they were last used.
ALTER TABLE api_keys ADD COLUMN created_by_type TEXT NOT NULL DEFAULT 'operator';
ALTER TABLE api_keys ADD COLUMN created_by_id TEXT NOT NULL DEFAULT 'host';
ALTER TABLE api_keys ADD COLUMN replaced_by TEXT;
ALTER TABLE api_keys ADD COLUMN last_used_at TEXT;
