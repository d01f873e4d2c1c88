-- Ports that are exposed. A private one's token is nowhere: it is made of the label and a key that is kept beside the database.
CREATE TABLE ports (
  label      TEXT PRIMARY KEY,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id),
  port       INTEGER NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('private', 'public')),
  -- What the caller wanted the label to begin with.
  wish       TEXT,
  org_id     TEXT NOT NULL,
  room_uid   TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ports_by_sandbox ON ports (sandbox_id, port);
