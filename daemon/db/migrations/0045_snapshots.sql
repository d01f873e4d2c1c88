-- What was taken of sandboxes. A row is written once all of it is on disk, and goes before it is removed.
CREATE TABLE snapshots (
  snapshot_id     TEXT PRIMARY KEY,
  room_uid        TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  agent_id        TEXT NOT NULL,
  sandbox_id      TEXT NOT NULL,
  name            TEXT,
  -- Which its source had begun with, or was saved as last.
  parent          TEXT,
  mode            TEXT NOT NULL CHECK (mode IN ('full', 'disk')),
  memory_mib      INTEGER NOT NULL,
  vcpu_count      INTEGER NOT NULL,
  disk_mib        INTEGER NOT NULL,
  template_id     TEXT NOT NULL,
  template_digest TEXT,
  -- What a sandbox of it has where nobody says else, in JSON.
  settings        TEXT NOT NULL,
  size_bytes      INTEGER NOT NULL,
  paused_ms       INTEGER NOT NULL,
  digest          TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshots_by_room ON snapshots (room_uid, snapshot_id);
CREATE INDEX snapshots_by_org ON snapshots (org_id, size_bytes);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at) WHERE expires_at IS NOT NULL;
-- Of which snapshot a sandbox is, or which was taken of it last.
ALTER TABLE sandboxes ADD COLUMN snapshot_id TEXT;
