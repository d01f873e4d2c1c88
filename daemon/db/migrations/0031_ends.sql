-- When an organization's end began, and when all of it had gone. Its row stays for what is kept of it, and gives its name back.
ALTER TABLE orgs ADD COLUMN ending_at TEXT;
ALTER TABLE orgs ADD COLUMN ended_at TEXT;
CREATE INDEX orgs_ending ON orgs (ending_at) WHERE ending_at IS NOT NULL AND ended_at IS NULL;

-- A key that ended because its maker may not have it any more: then nothing that it has made stays.
ALTER TABLE api_keys ADD COLUMN ended_with_maker INTEGER NOT NULL DEFAULT 0;
