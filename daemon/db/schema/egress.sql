-- Egress traffic of sandboxes.

-- Traffic of a sandbox; the row stays when the sandbox is gone.
CREATE TABLE egress_usage (
  sandbox_id     TEXT PRIMARY KEY,
  org_id         TEXT NOT NULL REFERENCES orgs (org_id),
  room_uid       TEXT NOT NULL,
  sent_bytes     INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  connections    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Destinations, allowed and refused: a fixed number of slots of each kind, which are reused.
CREATE TABLE egress_destinations (
  sandbox_id     TEXT NOT NULL,
  allowed        INTEGER NOT NULL,
  slot           INTEGER NOT NULL,
  host           TEXT,
  ip             TEXT,
  port           INTEGER,
  reason         TEXT,
  connections    INTEGER NOT NULL,
  sent_bytes     INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  first_at       TEXT NOT NULL,
  last_at        TEXT NOT NULL,
  PRIMARY KEY (sandbox_id, allowed, slot)
) STRICT, WITHOUT ROWID;

-- Start of that record, and connections that had no slot.
CREATE TABLE egress_networks (
  sandbox_id TEXT PRIMARY KEY,
  since      TEXT NOT NULL,
  allowed    INTEGER NOT NULL,
  refused    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
