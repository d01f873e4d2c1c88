-- People: accounts, memberships, sessions, sign-in links, passkeys and identities of other providers.

CREATE TABLE users (
  user_id       TEXT NOT NULL PRIMARY KEY,
  email         TEXT NOT NULL UNIQUE,
  name          TEXT NOT NULL,
  password_hash TEXT,
  created_at    TEXT NOT NULL,
  disabled_at   TEXT,
  verified_at   TEXT
);

CREATE TABLE memberships (
  org_id     TEXT NOT NULL,
  user_id    TEXT NOT NULL,
  role       TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (org_id, user_id)
) WITHOUT ROWID;
CREATE INDEX memberships_by_user ON memberships (user_id);

CREATE TABLE sessions (
  session_id    TEXT NOT NULL PRIMARY KEY,
  secret_sha256 TEXT NOT NULL UNIQUE,
  user_id       TEXT NOT NULL,
  org_id        TEXT NOT NULL,
  created_at    TEXT NOT NULL,
  seen_at       TEXT NOT NULL,
  proved_at     TEXT NOT NULL,
  ip            TEXT,
  user_agent    TEXT,
  ended_at      TEXT
);
CREATE INDEX sessions_by_user ON sessions (user_id);

-- A setup link has no user and no organization, a sign-in link has a user, an invitation has an organization.
CREATE TABLE links (
  link_id         TEXT NOT NULL PRIMARY KEY,
  token_sha256    TEXT NOT NULL UNIQUE,
  kind            TEXT NOT NULL,
  user_id         TEXT,
  org_id          TEXT,
  role            TEXT,
  email           TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT NOT NULL,
  used_at         TEXT
);
CREATE INDEX links_by_org ON links (org_id);

-- Browsers with an earlier sign-in: failed attempts from elsewhere do not delay them.
CREATE TABLE browsers (
  secret_sha256 TEXT NOT NULL PRIMARY KEY,
  user_id       TEXT NOT NULL,
  created_at    TEXT NOT NULL
);
CREATE INDEX browsers_by_user ON browsers (user_id);

-- Public keys of passkeys, each for one name of the service.
CREATE TABLE passkeys (
  passkey_id    TEXT NOT NULL PRIMARY KEY,
  user_id       TEXT NOT NULL,
  credential_id TEXT NOT NULL UNIQUE,
  public_key    TEXT NOT NULL,
  counter       INTEGER NOT NULL,
  transports    TEXT NOT NULL,
  rp_id         TEXT NOT NULL,
  name          TEXT NOT NULL,
  is_synced     INTEGER NOT NULL,
  created_at    TEXT NOT NULL,
  last_used_at  TEXT
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);

-- Accounts of identity providers: an issuer and a subject belong to one person.
CREATE TABLE identities (
  identity_id  TEXT NOT NULL PRIMARY KEY,
  user_id      TEXT NOT NULL,
  issuer       TEXT NOT NULL,
  subject      TEXT NOT NULL,
  label        TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id);

-- Subjects that were removed from an organization and do not join it again by signing in.
CREATE TABLE departed_subjects (
  subject_sha256 TEXT NOT NULL,
  org_id         TEXT NOT NULL,
  departed_at    TEXT NOT NULL,
  PRIMARY KEY (subject_sha256, org_id)
) STRICT, WITHOUT ROWID;

-- Requests of sign-up that wait for the operator.
CREATE TABLE signup_requests (
  email      TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  note       TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;

-- Hashes of addresses that have received the credits of a sign-up; they stay when the person is forgotten.
CREATE TABLE signup_grants (
  address_sha256 TEXT NOT NULL PRIMARY KEY,
  granted_at     TEXT NOT NULL
) STRICT;
