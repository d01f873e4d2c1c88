-- Applications that people sign in: who they are, what was granted to them, and the tokens that they come with. A grant is a key.
CREATE TABLE oauth_clients (
  client_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE TABLE oauth_grants (
  key_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- Where the application was sent back to; null for one that has no browser.
  redirect_uri TEXT,
  -- What the tokens are good for: mcp, or all of the API.
  audience TEXT NOT NULL,
  code_sha256 TEXT UNIQUE,
  code_challenge TEXT,
  code_expires_at TEXT,
  code_used_at TEXT
);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);
CREATE TABLE oauth_tokens (
  token_sha256 TEXT NOT NULL PRIMARY KEY,
  key_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  -- Of a refresh token that has a successor: when it got it, and what the successor was made with.
  rotated_at TEXT,
  salt TEXT
);
CREATE INDEX oauth_tokens_by_key ON oauth_tokens (key_id, kind, created_at);
-- Requests of devices without a browser, until somebody has decided.
CREATE TABLE oauth_devices (
  device_sha256 TEXT NOT NULL PRIMARY KEY,
  user_code TEXT NOT NULL UNIQUE,
  client_id TEXT NOT NULL,
  audience TEXT NOT NULL,
  scopes TEXT NOT NULL,
  ip TEXT,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  -- Null until somebody has decided.
  allowed INTEGER,
  key_id TEXT
);
-- A key may be what an application was granted: What a column may say can only be changed with its table.
CREATE TABLE api_keys_next (
  key_id          TEXT PRIMARY KEY,
  org_id          TEXT REFERENCES orgs (org_id),
  kind            TEXT NOT NULL CHECK (kind IN ('api', 'operator', 'oauth')),
  name            TEXT NOT NULL,
  key_sha256      TEXT NOT NULL UNIQUE,
  key_prefix      TEXT NOT NULL,
  scopes          TEXT NOT NULL,
  room_ids        TEXT,
  agent_id        TEXT,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  revoked_at      TEXT,
  created_by_type TEXT NOT NULL DEFAULT 'operator',
  created_by_id   TEXT NOT NULL DEFAULT 'host',
  replaced_by     TEXT,
  last_used_at    TEXT,
  first_key_id    TEXT,
  ended_with_maker INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO api_keys_next SELECT key_id, org_id, kind, name, key_sha256, key_prefix, scopes, room_ids, agent_id, created_at, expires_at,
  revoked_at, created_by_type, created_by_id, replaced_by, last_used_at, first_key_id, ended_with_maker FROM api_keys;
DROP TABLE api_keys;
ALTER TABLE api_keys_next RENAME TO api_keys;
CREATE INDEX api_keys_by_org ON api_keys (org_id);
CREATE INDEX api_keys_by_first ON api_keys (first_key_id);
CREATE INDEX api_keys_by_maker ON api_keys (created_by_id);
