-- Mail that is to be sent, and what was in the last day. A link that lets somebody in is made when its mail is sent, and kept nowhere.
CREATE TABLE mails (
  mail_id    TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL,
  to_address TEXT NOT NULL,
  -- Who asked for it; NULL: nobody who is signed in.
  user_id    TEXT,
  link_id    TEXT,
  created_at TEXT NOT NULL,
  attempts   INTEGER NOT NULL,
  -- When to try next; NULL: it is over.
  next_at    TEXT,
  outcome    TEXT
) STRICT;
CREATE INDEX mails_by_next ON mails (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX mails_by_address ON mails (to_address, created_at);
CREATE INDEX mails_by_moment ON mails (created_at);
-- Who would like to come in, and waits for the operator's yes.
CREATE TABLE signup_requests (
  email      TEXT NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL,
  note       TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
-- Addresses whose credits for signing up were given. What is kept is a hash, and stays when the person is forgotten.
CREATE TABLE signup_grants (
  address_sha256 TEXT NOT NULL PRIMARY KEY,
  granted_at     TEXT NOT NULL
) STRICT;
-- When a person has shown that the address is theirs.
ALTER TABLE users ADD COLUMN verified_at TEXT;
