-- SSH public keys and short-lived SSH passwords.

-- The same public key may be registered by several organizations.
CREATE TABLE ssh_keys (
  ssh_key_id      TEXT PRIMARY KEY,
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  name            TEXT NOT NULL,
  algorithm       TEXT NOT NULL,
  fingerprint     TEXT NOT NULL,
  public_key      TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ssh_keys_by_fingerprint ON ssh_keys (fingerprint, org_id);
CREATE INDEX ssh_keys_by_org ON ssh_keys (org_id, ssh_key_id);

-- Passwords, each for one sandbox; only the hash of the token is stored.
CREATE TABLE ssh_accesses (
  access_id    TEXT PRIMARY KEY,
  sandbox_id   TEXT NOT NULL REFERENCES sandboxes (sandbox_id),
  token_sha256 TEXT NOT NULL UNIQUE,
  -- The caller that the token stands for; the access ends with it.
  caller       TEXT NOT NULL,
  username     TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ssh_accesses_by_sandbox ON ssh_accesses (sandbox_id, access_id);
CREATE INDEX ssh_accesses_by_expiry ON ssh_accesses (expires_at);
