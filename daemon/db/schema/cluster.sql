-- Copy of the directory that the hosts of a service share; empty on a single host.

CREATE TABLE hosts (
  host_id     TEXT NOT NULL PRIMARY KEY,
  state       TEXT NOT NULL CHECK (state IN ('active', 'draining', 'gone')),
  -- host:port at which other hosts reach this one, and the certificate that it presents.
  address     TEXT NOT NULL,
  certificate TEXT NOT NULL,
  -- URL for clients.
  url         TEXT NOT NULL,
  labels      TEXT NOT NULL,
  joined_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The host of each room. A name is taken as long as its row exists.
CREATE TABLE placements (
  room_uid     TEXT NOT NULL PRIMARY KEY,
  org_id       TEXT NOT NULL,
  room_id      TEXT NOT NULL,
  host_id      TEXT NOT NULL,
  -- Increases with each host that takes the room.
  epoch        INTEGER NOT NULL,
  labels       TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  -- Another host that has the room in the same epoch, in which case neither serves it; null: none.
  contested_by TEXT,
  -- JSON of the use of a room that comes from another host; null once the host has its rows.
  moved_use    TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX placements_by_name ON placements (org_id, room_id);
CREATE INDEX placements_by_host ON placements (host_id);
CREATE INDEX placements_moved ON placements (host_id, room_uid) WHERE moved_use IS NOT NULL;

-- Use of each organization on each host, which counts for its plan.
CREATE TABLE org_use (
  org_id     TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  rooms      INTEGER NOT NULL,
  sandboxes  INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  disk_gib   REAL NOT NULL,
  -- Millionths of a credit.
  used_micro INTEGER NOT NULL,
  PRIMARY KEY (org_id, host_id)
) STRICT, WITHOUT ROWID;

-- Last change of the directory that the copy contains.
CREATE TABLE mirror (
  only_one  INTEGER NOT NULL PRIMARY KEY CHECK (only_one = 1),
  seq       INTEGER NOT NULL,
  change_id TEXT NOT NULL,
  -- The newest change as of which rows were read: they may have later changes than the last one above. Null: they have not.
  seen_seq       INTEGER,
  seen_change_id TEXT,
  -- 1: the directory was set back, and the host was no member when it was to insert lost rows again.
  is_owed   INTEGER NOT NULL DEFAULT 0 CHECK (is_owed IN (0, 1))
) STRICT;

-- Rows that granted access until the directory removed them, such as API keys and memberships.
CREATE TABLE tombstones (
  tbl        TEXT NOT NULL,
  key        TEXT NOT NULL,
  -- Of the removed row: a later row with the same key is another one.
  created_at TEXT NOT NULL,
  removed_at TEXT NOT NULL,
  -- Of an API key.
  key_sha256 TEXT,
  PRIMARY KEY (tbl, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_by_removal ON tombstones (removed_at);

-- Rows of the directory that the tables of this host refuse. They are retried.
CREATE TABLE unfit_rows (
  tbl    TEXT NOT NULL,
  key    TEXT NOT NULL,
  -- As JSON; null: the directory has deleted it.
  row    TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (tbl, key)
) STRICT, WITHOUT ROWID;
