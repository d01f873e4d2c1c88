-- Accounts elsewhere by which people sign in: each is an issuer's subject, and one person's.
CREATE TABLE identities (
  identity_id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  label TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id);
