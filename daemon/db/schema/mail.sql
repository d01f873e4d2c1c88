-- Mail to be sent, and mail of the last day. A sign-in link is made when its mail is sent, and is not stored.

CREATE TABLE mails (
  mail_id    TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL,
  to_address TEXT NOT NULL,
  -- The person that requested the mail; null: no signed-in person.
  user_id    TEXT,
  link_id    TEXT,
  created_at TEXT NOT NULL,
  attempts   INTEGER NOT NULL,
  -- Next attempt; null: none.
  next_at    TEXT,
  outcome    TEXT
) STRICT;
CREATE INDEX mails_by_next ON mails (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX mails_by_address ON mails (to_address, created_at);
CREATE INDEX mails_by_moment ON mails (created_at);
