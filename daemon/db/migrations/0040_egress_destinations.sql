-- Where a sandbox connected to and where it was refused: so many places of each kind, a slot each, which the next one takes over.
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

-- Since when they are told apart, and how many connections had no slot any more.
CREATE TABLE egress_networks (
  sandbox_id TEXT PRIMARY KEY,
  since      TEXT NOT NULL,
  allowed    INTEGER NOT NULL,
  refused    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO egress_networks SELECT sandbox_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 0, 0 FROM sandboxes;
