-- The audit: one hash chain for each organization; org_key '' is the chain of records without one.

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

-- Closed days of the audit: each is a file of its own below audit/, which never changes. A file that was removed keeps its row.
CREATE TABLE audit_files (
  number     INTEGER NOT NULL PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  sha256     TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  -- Of its youngest record.
  last_at    TEXT NOT NULL,
  removed_at TEXT
) STRICT;

-- Records of each chain in each of these files. They are read from there once the file has its row, and from the table audit before.
CREATE TABLE audit_stretches (
  org_key   TEXT NOT NULL,
  last_seq  INTEGER NOT NULL,
  last_hash TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  first_at  TEXT NOT NULL,
  last_at   TEXT NOT NULL,
  file      INTEGER NOT NULL,
  PRIMARY KEY (org_key, last_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_stretches_by_file ON audit_stretches (file);

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
  OR EXISTS (SELECT 1 FROM audit_stretches WHERE org_key = NEW.org_key AND last_seq >= NEW.seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- Records before the start of the chain may be deleted, those of which a closed day has a copy, and no others.
CREATE TRIGGER audit_is_shortened BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_starts WHERE org_key = OLD.org_key AND seq >= OLD.seq)
  AND NOT EXISTS (
    SELECT 1 FROM audit_stretches AS s CROSS JOIN audit_files AS f ON f.number = s.file
    WHERE s.org_key = OLD.org_key AND s.last_seq >= OLD.seq
  )
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- A stretch continues where the previous one ended, up to a record that exists.
CREATE TRIGGER audit_stretches_follow BEFORE INSERT ON audit_stretches
WHEN NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.last_seq AND hash = NEW.last_hash)
  OR NEW.last_seq < NEW.first_seq
  OR EXISTS (SELECT 1 FROM audit_stretches WHERE org_key = NEW.org_key AND last_seq >= NEW.first_seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_stretches_never_change BEFORE UPDATE ON audit_stretches
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- One that was purged may go, and one whose file was never recorded.
CREATE TRIGGER audit_stretches_stay BEFORE DELETE ON audit_stretches
WHEN EXISTS (SELECT 1 FROM audit_files WHERE number = OLD.file)
  AND NOT EXISTS (SELECT 1 FROM audit_starts WHERE org_key = OLD.org_key AND seq >= OLD.last_seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- Files are only added; one that has no stretch any more may be removed.
CREATE TRIGGER audit_files_are_added BEFORE INSERT ON audit_files
WHEN EXISTS (SELECT 1 FROM audit_files WHERE number >= NEW.number OR name = NEW.name)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_files_are_only_removed BEFORE UPDATE ON audit_files
WHEN OLD.removed_at IS NOT NULL OR NEW.removed_at IS NULL
  OR NEW.number <> OLD.number OR NEW.name <> OLD.name OR NEW.sha256 <> OLD.sha256
  OR NEW.size_bytes <> OLD.size_bytes OR NEW.last_at <> OLD.last_at
  OR EXISTS (SELECT 1 FROM audit_stretches WHERE file = OLD.number)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_files_stay BEFORE DELETE ON audit_files
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
  AND NOT EXISTS (SELECT 1 FROM audit_stretches WHERE org_key = NEW.org_key AND last_seq = NEW.seq AND last_hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_starts_only_advance BEFORE UPDATE ON audit_starts
WHEN NEW.org_key <> OLD.org_key OR NEW.seq <= OLD.seq
  OR NOT EXISTS (
    SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash
    UNION ALL
    SELECT 1 FROM audit_stretches WHERE org_key = NEW.org_key AND last_seq = NEW.seq AND last_hash = NEW.hash
  )
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_starts_stay BEFORE DELETE ON audit_starts
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
