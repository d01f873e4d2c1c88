-- People: who they are, where they belong, how they are signed in, and the links that let them in once.
CREATE TABLE users (
  user_id TEXT NOT NULL PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  password_hash TEXT,
  created_at TEXT NOT NULL,
  disabled_at TEXT
);
CREATE TABLE memberships (
  org_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  role TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (org_id, user_id)
) WITHOUT ROWID;
CREATE INDEX memberships_by_user ON memberships (user_id);
CREATE TABLE sessions (
  session_id TEXT NOT NULL PRIMARY KEY,
  secret_sha256 TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  org_id TEXT NOT NULL,
  created_at TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  proved_at TEXT NOT NULL,
  ip TEXT,
  user_agent TEXT,
  ended_at TEXT
);
CREATE INDEX sessions_by_user ON sessions (user_id);
-- A setup link has neither user nor organization of its own, one of a user a user, an invitation an organization.
CREATE TABLE links (
  link_id TEXT NOT NULL PRIMARY KEY,
  token_sha256 TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  user_id TEXT,
  org_id TEXT,
  role TEXT,
  email TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  used_at TEXT
);
CREATE INDEX links_by_org ON links (org_id);
CREATE INDEX api_keys_by_maker ON api_keys (created_by_id);
