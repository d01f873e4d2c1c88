-- The audit: one hash chain for each organization; org_key '' is the chain of records without one.

CREATE TABLE audit (
  org_key     TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  audit_id    TEXT NOT NULL,
  event       TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('success', 'denied', 'error')),
  at          TEXT NOT NULL,
  org_id      TEXT,
  room_id     TEXT,
  room_uid    TEXT,
  agent_id    TEXT,
  sandbox_id  TEXT,
  actor_type  TEXT NOT NULL,
  actor_id    TEXT NOT NULL,
  actor_name  TEXT NOT NULL,
  source      TEXT NOT NULL,
  request_id  TEXT,
  ip          TEXT,
  status      INTEGER,
  error_code  TEXT,
  duration_ms REAL,
  details     TEXT NOT NULL,
  prev_hash   TEXT NOT NULL,
  hash        TEXT NOT NULL,
  PRIMARY KEY (org_key, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_room ON audit (room_uid, seq) WHERE room_uid IS NOT NULL;

-- Head of each chain: without it, a chain whose last records were removed would verify.
CREATE TABLE audit_heads (
  org_key TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  hash    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- First record of each chain after a purge; the chain continues from its hash.
CREATE TABLE audit_starts (
  org_key TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  hash    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Calls that are counted instead of recorded: those of an organization beyond its records of the day. Equal calls are one row until a
-- record reports them. '' stands for no room, agent, actor or error.
CREATE TABLE audit_counts (
  org_key    TEXT NOT NULL,
  event      TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  room_uid   TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  actor_id   TEXT NOT NULL,
  error_code TEXT NOT NULL,
  count      INTEGER NOT NULL,
  first_at   TEXT NOT NULL,
  last_at    TEXT NOT NULL,
  -- The last of these calls, as its record would have been.
  last_entry TEXT NOT NULL,
  PRIMARY KEY (org_key, event, outcome, room_uid, agent_id, actor_id, error_code)
) STRICT, WITHOUT ROWID;

-- Records are never changed. REPLACE deletes rows without firing triggers of DELETE, so an INSERT is checked as well.
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_never_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- Records before the start of the chain may be deleted, and no others.
CREATE TRIGGER audit_is_shortened_by_purging BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_starts WHERE org_key = OLD.org_key AND seq >= OLD.seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- A head moves forward to a record that exists. Several records may be added at once.
CREATE TRIGGER audit_heads_only_advance BEFORE UPDATE ON audit_heads
WHEN NEW.org_key <> OLD.org_key OR NEW.seq <= OLD.seq
  OR NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_heads_are_never_replaced BEFORE INSERT ON audit_heads
WHEN EXISTS (SELECT 1 FROM audit_heads WHERE org_key = NEW.org_key AND seq >= NEW.seq)
  OR NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_heads_stay BEFORE DELETE ON audit_heads
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

CREATE TRIGGER audit_starts_begin_at_a_record BEFORE INSERT ON audit_starts
WHEN NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_starts_only_advance BEFORE UPDATE ON audit_starts
WHEN NEW.org_key <> OLD.org_key OR NEW.seq <= OLD.seq
  OR NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_starts_stay BEFORE DELETE ON audit_starts
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
