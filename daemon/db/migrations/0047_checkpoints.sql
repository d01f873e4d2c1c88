-- What was taken of rooms as a whole. A row is written once all of it is on disk, and goes before it is removed.
CREATE TABLE checkpoints (
  checkpoint_id   TEXT PRIMARY KEY,
  room_uid        TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  name            TEXT,
  -- Its sandboxes with their snapshots, in JSON.
  sandboxes       TEXT NOT NULL,
  drive_bytes     INTEGER NOT NULL,
  -- Besides the drive and the snapshots.
  state_bytes     INTEGER NOT NULL,
  paused_ms       INTEGER NOT NULL,
  -- The instant that it is of.
  cut_at          TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  expires_at      TEXT,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_by_room ON checkpoints (room_uid, checkpoint_id);
CREATE INDEX checkpoints_by_org ON checkpoints (org_id);
CREATE INDEX checkpoints_by_expiry ON checkpoints (expires_at) WHERE expires_at IS NOT NULL;
-- The checkpoint that a snapshot is part of, and goes with.
ALTER TABLE snapshots ADD COLUMN checkpoint_id TEXT;
CREATE INDEX snapshots_by_checkpoint ON snapshots (checkpoint_id) WHERE checkpoint_id IS NOT NULL;
-- Names by which guests that were saved in other rooms know this one, in JSON.
ALTER TABLE rooms ADD COLUMN former_ids TEXT NOT NULL DEFAULT '[]';
-- What is just being made of it: a daemon that finds this at its start brings it to its end, in JSON.
ALTER TABLE rooms ADD COLUMN branching TEXT;
