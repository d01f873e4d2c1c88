-- Passkeys, each good at one name of the service: the public halves.
CREATE TABLE passkeys (
  passkey_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  credential_id TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  counter INTEGER NOT NULL,
  transports TEXT NOT NULL,
  rp_id TEXT NOT NULL,
  name TEXT NOT NULL,
  is_synced INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);
