-- Snapshots of sandboxes and checkpoints of rooms. A row is written when all files are on disk, and deleted before they are removed.

CREATE TABLE snapshots (
  snapshot_id     TEXT PRIMARY KEY,
  room_uid        TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  agent_id        TEXT NOT NULL,
  sandbox_id      TEXT NOT NULL,
  name            TEXT,
  -- Snapshot that the sandbox was made from, or the previous one of the same sandbox.
  parent          TEXT,
  mode            TEXT NOT NULL CHECK (mode IN ('full', 'disk')),
  memory_mib      INTEGER NOT NULL,
  vcpu_count      INTEGER NOT NULL,
  disk_mib        INTEGER NOT NULL,
  template_id     TEXT NOT NULL,
  template_digest TEXT,
  -- Defaults of a sandbox that is made from the snapshot, as JSON.
  settings        TEXT NOT NULL,
  size_bytes      INTEGER NOT NULL,
  paused_ms       INTEGER NOT NULL,
  digest          TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL,
  -- Checkpoint that the snapshot is part of; it is removed with it.
  checkpoint_id   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshots_by_room ON snapshots (room_uid, snapshot_id);
CREATE INDEX snapshots_by_org ON snapshots (org_id, size_bytes);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX snapshots_by_checkpoint ON snapshots (checkpoint_id) WHERE checkpoint_id IS NOT NULL;

CREATE TABLE checkpoints (
  checkpoint_id   TEXT PRIMARY KEY,
  room_uid        TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  name            TEXT,
  -- Sandboxes with their snapshots, as JSON.
  sandboxes       TEXT NOT NULL,
  drive_bytes     INTEGER NOT NULL,
  -- In addition to the drive and the snapshots.
  state_bytes     INTEGER NOT NULL,
  paused_ms       INTEGER NOT NULL,
  -- The instant of the checkpoint.
  cut_at          TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_by_room ON checkpoints (room_uid, checkpoint_id);
CREATE INDEX checkpoints_by_org ON checkpoints (org_id);
CREATE INDEX checkpoints_by_expiry ON checkpoints (expires_at) WHERE expires_at IS NOT NULL;
