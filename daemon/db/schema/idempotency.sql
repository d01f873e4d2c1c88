-- Answers to calls with an Idempotency-Key.

CREATE TABLE idempotency (
  key_id          TEXT NOT NULL,
  method          TEXT NOT NULL,
  path            TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_sha256     TEXT NOT NULL,
  -- Null while the first request runs.
  status          INTEGER,
  reply           TEXT,
  created_at      TEXT NOT NULL,
  -- Compressed form of a large reply.
  reply_zstd      BLOB,
  reply_bytes     INTEGER NOT NULL DEFAULT 0,
  -- Work that a call without an answer has begun.
  begun           TEXT,
  org_id          TEXT NOT NULL DEFAULT '',
  kept_bytes      INTEGER NOT NULL DEFAULT 0,
  -- Id of the work of a call that was made in another room; null: it follows from the row.
  work_ulid       TEXT,
  PRIMARY KEY (key_id, method, path, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Answers to be removed: those older than a day, the oldest beyond the number and the bytes of a key and of an organization.
CREATE INDEX idempotency_by_org ON idempotency (org_id, created_at);
CREATE INDEX idempotency_reply_bytes ON idempotency (key_id, created_at, reply_bytes) WHERE reply_bytes > 0;
CREATE INDEX idempotency_kept_bytes ON idempotency (org_id, created_at, kept_bytes) WHERE kept_bytes > 0;

-- Sums of these rows, which may be hundreds of thousands.
CREATE TABLE idempotency_use (
  -- org or key: another host may name a key like an organization.
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,
  calls   INTEGER NOT NULL,
  -- Of an organization's replies; of a key's large replies.
  bytes   INTEGER NOT NULL,
  PRIMARY KEY (kind, subject)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER idempotency_added AFTER INSERT ON idempotency
BEGIN
  INSERT INTO idempotency_use VALUES ('org', NEW.org_id, 1, NEW.kept_bytes), ('key', NEW.key_id, 1, NEW.reply_bytes)
    ON CONFLICT DO UPDATE SET calls = calls + 1, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER idempotency_changed AFTER UPDATE OF org_id, kept_bytes, reply_bytes ON idempotency
BEGIN
  UPDATE idempotency_use SET bytes = bytes - OLD.reply_bytes + NEW.reply_bytes WHERE kind = 'key' AND subject = NEW.key_id;
  UPDATE idempotency_use SET calls = calls - 1, bytes = bytes - OLD.kept_bytes WHERE kind = 'org' AND subject = OLD.org_id;
  INSERT INTO idempotency_use VALUES ('org', NEW.org_id, 1, NEW.kept_bytes)
    ON CONFLICT DO UPDATE SET calls = calls + 1, bytes = bytes + excluded.bytes;
  DELETE FROM idempotency_use WHERE kind = 'org' AND subject = OLD.org_id AND calls = 0;
END;

CREATE TRIGGER idempotency_removed AFTER DELETE ON idempotency
BEGIN
  UPDATE idempotency_use SET calls = calls - 1, bytes = bytes - OLD.kept_bytes WHERE kind = 'org' AND subject = OLD.org_id;
  UPDATE idempotency_use SET calls = calls - 1, bytes = bytes - OLD.reply_bytes WHERE kind = 'key' AND subject = OLD.key_id;
  DELETE FROM idempotency_use WHERE kind = 'org' AND subject = OLD.org_id AND calls = 0;
  DELETE FROM idempotency_use WHERE kind = 'key' AND subject = OLD.key_id AND calls = 0;
END;
