-- Public keys that log in by SSH. The same key may be another organization's too: public keys are no secrets.
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

-- Short-lived passwords, each for one sandbox; the token itself is nowhere.
CREATE TABLE ssh_accesses (
  access_id    TEXT PRIMARY KEY,
  sandbox_id   TEXT NOT NULL REFERENCES sandboxes (sandbox_id),
  token_sha256 TEXT NOT NULL UNIQUE,
  -- Whom the token stands for, and whose end is its own.
  caller       TEXT NOT NULL,
  username     TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ssh_accesses_by_sandbox ON ssh_accesses (sandbox_id, access_id);
CREATE INDEX ssh_accesses_by_expiry ON ssh_accesses (expires_at);
