-- API keys. A key is never stored: its SHA-256, and its first characters for people.

CREATE TABLE api_keys (
  key_id           TEXT PRIMARY KEY,
  org_id           TEXT REFERENCES orgs (org_id),
  kind             TEXT NOT NULL CHECK (kind IN ('api', 'operator', 'oauth')),
  name             TEXT NOT NULL,
  key_sha256       TEXT NOT NULL UNIQUE,
  key_prefix       TEXT NOT NULL,
  scopes           TEXT NOT NULL,
  room_ids         TEXT,
  agent_id         TEXT,
  created_at       TEXT NOT NULL,
  expires_at       TEXT,
  revoked_at       TEXT,
  created_by_type  TEXT NOT NULL DEFAULT 'operator',
  created_by_id    TEXT NOT NULL DEFAULT 'host',
  replaced_by      TEXT,
  last_used_at     TEXT,
  -- First key of a line of rotated keys, which share a rate; null: the key was not made by rotation.
  first_key_id     TEXT,
  -- Whether the key ended because its maker lost access. Then everything that the key has made ends as well.
  ended_with_maker INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Keys by organization, by line of rotation and by maker.
CREATE INDEX api_keys_by_org ON api_keys (org_id, key_id);
CREATE INDEX api_keys_by_first ON api_keys (first_key_id, min(ifnull(revoked_at, '9'), ifnull(expires_at, '9')));
CREATE INDEX api_keys_by_maker ON api_keys (created_by_id);

-- Ended keys by their end, to be removed after a while.
CREATE INDEX api_keys_ended ON api_keys (min(ifnull(revoked_at, '9'), ifnull(expires_at, '9')), key_id)
  WHERE kind = 'api' AND (revoked_at IS NOT NULL OR expires_at IS NOT NULL);

-- Valid keys are counted whenever a key is made; ended keys may be many more.
CREATE INDEX api_keys_open ON api_keys (org_id, expires_at, revoked_at) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_granted ON api_keys (org_id, created_by_id) WHERE kind = 'oauth' AND revoked_at IS NULL;
