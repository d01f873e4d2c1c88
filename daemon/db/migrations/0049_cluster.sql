-- What hosts of one service share lies in their directory; these are this host's copy of it. Alone, a host has none of it.
CREATE TABLE hosts (
  host_id     TEXT NOT NULL PRIMARY KEY,
  state       TEXT NOT NULL CHECK (state IN ('active', 'draining', 'gone')),
  -- Where the other hosts reach it, as host:port, and the certificate that it shows them.
  address     TEXT NOT NULL,
  certificate TEXT NOT NULL,
  -- Where clients reach it.
  url         TEXT NOT NULL,
  labels      TEXT NOT NULL,
  joined_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Whose room is where: the name is taken as long as the row is there.
CREATE TABLE placements (
  room_uid   TEXT NOT NULL PRIMARY KEY,
  org_id     TEXT NOT NULL,
  room_id    TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  -- Counted up whenever another host gets it.
  epoch      INTEGER NOT NULL,
  labels     TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX placements_by_name ON placements (org_id, room_id);
-- What organizations have on each host, which counts for their plans.
CREATE TABLE org_use (
  org_id     TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  rooms      INTEGER NOT NULL,
  sandboxes  INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  disk_gib   REAL NOT NULL,
  -- Of its credits, in millionths of one.
  used_micro INTEGER NOT NULL,
  PRIMARY KEY (org_id, host_id)
) STRICT, WITHOUT ROWID;
-- Calls with an Idempotency-Key that changed what hosts share, and the host that has their answers.
CREATE TABLE done_calls (
  key_id          TEXT NOT NULL,
  method          TEXT NOT NULL,
  path            TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  host_id         TEXT NOT NULL,
  done_at         TEXT NOT NULL,
  PRIMARY KEY (key_id, method, path, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX done_calls_by_host ON done_calls (host_id, done_at);
-- Up to which change the copy is whole.
CREATE TABLE mirror (
  only_one  INTEGER NOT NULL PRIMARY KEY CHECK (only_one = 1),
  seq       INTEGER NOT NULL,
  change_id TEXT NOT NULL
) STRICT;
-- What was granted is true on all hosts, what is used on each by itself.
CREATE TABLE credit_grants (
  org_id  TEXT NOT NULL PRIMARY KEY,
  -- Beside those of its plan. Without a row nothing was granted, and without any of its plan it has no limit.
  granted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO credit_grants SELECT org_id, granted FROM org_credits WHERE granted IS NOT NULL;
ALTER TABLE org_credits DROP COLUMN granted;
