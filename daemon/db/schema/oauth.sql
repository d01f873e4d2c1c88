-- OAuth clients, grants, tokens and device authorizations. A grant is a key.

CREATE TABLE oauth_clients (
  client_id     TEXT NOT NULL PRIMARY KEY,
  name          TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  created_at    TEXT NOT NULL
);

CREATE TABLE oauth_grants (
  key_id          TEXT NOT NULL PRIMARY KEY,
  user_id         TEXT NOT NULL,
  client_id       TEXT NOT NULL,
  -- Redirect URI of the authorization; null for a client without a browser.
  redirect_uri    TEXT,
  -- Audience of the tokens: mcp, or the whole API.
  audience        TEXT NOT NULL,
  code_sha256     TEXT UNIQUE,
  code_challenge  TEXT,
  code_expires_at TEXT,
  code_used_at    TEXT
);
CREATE INDEX oauth_grants_by_user ON oauth_grants (user_id);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id);

CREATE TABLE oauth_tokens (
  token_sha256 TEXT NOT NULL PRIMARY KEY,
  key_id       TEXT NOT NULL,
  kind         TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT NOT NULL,
  -- Of a refresh token with a successor: the moment of rotation, and the salt of the successor.
  rotated_at   TEXT,
  salt         TEXT
);
CREATE INDEX oauth_tokens_by_key ON oauth_tokens (key_id, kind, created_at);

CREATE TABLE oauth_devices (
  device_sha256 TEXT NOT NULL PRIMARY KEY,
  user_code     TEXT NOT NULL UNIQUE,
  client_id     TEXT NOT NULL,
  audience      TEXT NOT NULL,
  scopes        TEXT NOT NULL,
  ip            TEXT,
  created_at    TEXT NOT NULL,
  expires_at    TEXT NOT NULL,
  -- Null until a person has decided.
  allowed       INTEGER,
  key_id        TEXT
);
