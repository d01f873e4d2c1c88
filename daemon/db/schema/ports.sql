-- Exposed ports. The token of a private port is derived from its label and a key beside the database.

CREATE TABLE ports (
  label      TEXT PRIMARY KEY,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (sandbox_id),
  port       INTEGER NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('private', 'public')),
  -- Prefix of the label that the caller wanted.
  wish       TEXT,
  org_id     TEXT NOT NULL,
  room_uid   TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  -- First key of the line of rotated keys that exposed the port; the port ends with that line.
  ends_with  TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX ports_by_sandbox ON ports (sandbox_id, port);

CREATE INDEX ports_by_org ON ports (org_id, ends_with) WHERE ends_with IS NOT NULL;

-- Ports of a maker end in the transaction that ends the access of the maker, by one row for all of them; their rows are removed later.
CREATE TABLE ended_port_makers (
  ends_with TEXT PRIMARY KEY,
  ended_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
