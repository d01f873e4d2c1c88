-- Nothing was ever kept in it.
DROP TABLE IF EXISTS meta;

-- Where each chain ends: a chain whose last records were taken away would otherwise look whole.
CREATE TABLE audit_heads (
  org_key TEXT PRIMARY KEY,
  seq     INTEGER NOT NULL,
  hash    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO audit_heads (org_key, seq, hash)
SELECT org_key, seq, hash FROM audit AS last
WHERE seq = (SELECT max(seq) FROM audit WHERE org_key = last.org_key);

CREATE TRIGGER audit_heads_only_advance BEFORE UPDATE ON audit_heads
WHEN NEW.org_key <> OLD.org_key OR NEW.seq <> OLD.seq + 1
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_heads_stay BEFORE DELETE ON audit_heads
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- REPLACE deletes without a word to the triggers above.
CREATE TRIGGER audit_is_never_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_heads_are_never_replaced BEFORE INSERT ON audit_heads
WHEN EXISTS (SELECT 1 FROM audit_heads WHERE org_key = NEW.org_key AND seq <> NEW.seq - 1)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
