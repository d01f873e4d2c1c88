-- Large replies are kept compressed, and only so many bytes of them for each key.
ALTER TABLE idempotency ADD COLUMN reply_zstd BLOB;
ALTER TABLE idempotency ADD COLUMN reply_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idempotency_reply_bytes ON idempotency (key_id, created_at, reply_bytes) WHERE reply_bytes > 0;
