-- Where each chain begins: the last record that was purged when its time was over. The chain goes on from its hash.
CREATE TABLE audit_starts (
  org_key TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  hash    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

-- What lies before the beginning may go, and nothing else.
DROP TRIGGER audit_is_never_shortened;
CREATE TRIGGER audit_is_shortened_by_purging BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_starts WHERE org_key = OLD.org_key AND seq >= OLD.seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
