-- Answers for a second call take only so many bytes for each organization, small ones too.
ALTER TABLE idempotency ADD COLUMN org_id TEXT NOT NULL DEFAULT '';
ALTER TABLE idempotency ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idempotency_kept_bytes ON idempotency (org_id, created_at, kept_bytes) WHERE kept_bytes > 0;
