-- Several records may be added at once: the end of a chain then goes to the last of them, which must be there.
DROP TRIGGER audit_heads_only_advance;
CREATE TRIGGER audit_heads_only_advance BEFORE UPDATE ON audit_heads
WHEN NEW.org_key <> OLD.org_key OR NEW.seq <= OLD.seq
  OR NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
DROP TRIGGER audit_heads_are_never_replaced;
CREATE TRIGGER audit_heads_are_never_replaced BEFORE INSERT ON audit_heads
WHEN EXISTS (SELECT 1 FROM audit_heads WHERE org_key = NEW.org_key AND seq >= NEW.seq)
  OR NOT EXISTS (SELECT 1 FROM audit WHERE org_key = NEW.org_key AND seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
