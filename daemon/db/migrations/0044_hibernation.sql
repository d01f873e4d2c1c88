-- Sandboxes whose memory is on disk, and what becomes of one that is idle. SQLite changes what a column may hold only by another
-- table, and what refers to it is made anew with it.
CREATE TABLE sandboxes_new (
  sandbox_id           TEXT PRIMARY KEY,
  room_uid             TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id               TEXT NOT NULL REFERENCES orgs (org_id),
  agent_id             TEXT NOT NULL,
  guest_cid            INTEGER NOT NULL CHECK (guest_cid BETWEEN 9100 AND 9999),
  -- The CID is free again once the guest's process is reaped.
  cid_held             INTEGER NOT NULL,
  template_id          TEXT NOT NULL,
  template_digest      TEXT,
  vcpu_count           INTEGER NOT NULL,
  memory_mib           INTEGER NOT NULL,
  disk_mib             INTEGER NOT NULL,
  state                TEXT NOT NULL CHECK (state IN ('creating', 'starting', 'running', 'pausing', 'paused', 'hibernating',
                         'hibernated', 'resuming', 'failed', 'destroying', 'destroyed')),
  status_reason        TEXT NOT NULL,
  status_message       TEXT NOT NULL,
  last_transition_at   TEXT NOT NULL,
  exit_cause           TEXT,
  exit_at              TEXT,
  env                  TEXT NOT NULL,
  egress_mode          TEXT NOT NULL CHECK (egress_mode IN ('none', 'allowlist', 'public')),
  egress_allowlist     TEXT NOT NULL,
  egress_revision      INTEGER NOT NULL,
  guest_net            INTEGER NOT NULL,
  fabric_attached      INTEGER NOT NULL,
  labels               TEXT NOT NULL,
  idle_timeout_seconds INTEGER,
  -- What becomes of one that is idle, and what wakes one that rests: words in JSON.
  on_idle              TEXT NOT NULL DEFAULT 'destroy' CHECK (on_idle IN ('destroy', 'standby', 'hibernate')),
  wake_on              TEXT NOT NULL DEFAULT '[]',
  max_duration_seconds INTEGER,
  created_at           TEXT NOT NULL,
  started_at           TEXT,
  ready_at             TEXT,
  stopped_at           TEXT,
  expires_at           TEXT,
  create_wall_ms       INTEGER,
  boot                 TEXT NOT NULL,
  start_mode           TEXT,
  drive_fault          TEXT,
  created_by_type      TEXT NOT NULL,
  created_by_id        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO sandboxes_new (
  sandbox_id, room_uid, org_id, agent_id, guest_cid, cid_held, template_id, template_digest, vcpu_count, memory_mib,
  disk_mib, state, status_reason, status_message, last_transition_at, exit_cause, exit_at, env, egress_mode,
  egress_allowlist, egress_revision, guest_net, fabric_attached, labels, idle_timeout_seconds, on_idle, wake_on,
  max_duration_seconds, created_at, started_at, ready_at, stopped_at, expires_at, create_wall_ms, boot, start_mode,
  drive_fault, created_by_type, created_by_id
) SELECT
  sandbox_id, room_uid, org_id, agent_id, guest_cid, cid_held, template_id, template_digest, vcpu_count, memory_mib,
  disk_mib, state, status_reason, status_message, last_transition_at, exit_cause, exit_at, env, egress_mode,
  egress_allowlist, egress_revision, guest_net, fabric_attached, labels, idle_timeout_seconds, 'destroy', '[]',
  max_duration_seconds, created_at, started_at, ready_at, stopped_at, expires_at, create_wall_ms, boot, start_mode,
  drive_fault, created_by_type, created_by_id
FROM sandboxes;

CREATE TABLE ssh_accesses_new (
  access_id    TEXT PRIMARY KEY,
  sandbox_id   TEXT NOT NULL REFERENCES sandboxes_new (sandbox_id),
  token_sha256 TEXT NOT NULL UNIQUE,
  -- Whom the token stands for, and whose end is its own.
  caller       TEXT NOT NULL,
  username     TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO ssh_accesses_new SELECT access_id, sandbox_id, token_sha256, caller, username, created_at, expires_at FROM ssh_accesses;

CREATE TABLE ports_new (
  label      TEXT PRIMARY KEY,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes_new (sandbox_id),
  port       INTEGER NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('private', 'public')),
  -- What the caller wanted the label to begin with.
  wish       TEXT,
  org_id     TEXT NOT NULL,
  room_uid   TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  ends_with  TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO ports_new SELECT label, sandbox_id, port, visibility, wish, org_id, room_uid, agent_id, created_at, expires_at, ends_with
FROM ports;

DROP TABLE ssh_accesses;
DROP TABLE ports;
DROP TABLE sandboxes;
ALTER TABLE sandboxes_new RENAME TO sandboxes;
ALTER TABLE ssh_accesses_new RENAME TO ssh_accesses;
ALTER TABLE ports_new RENAME TO ports;

CREATE UNIQUE INDEX sandboxes_by_cid ON sandboxes (guest_cid) WHERE cid_held = 1;
CREATE UNIQUE INDEX sandboxes_by_live_agent ON sandboxes (room_uid, agent_id) WHERE state NOT IN ('failed', 'destroyed');
CREATE INDEX sandboxes_by_room ON sandboxes (room_uid, sandbox_id);
CREATE INDEX sandboxes_by_agent ON sandboxes (room_uid, agent_id, sandbox_id);
CREATE INDEX sandboxes_by_live_org ON sandboxes (org_id, state, memory_mib, disk_mib) WHERE state NOT IN ('failed', 'destroyed');
CREATE INDEX sandboxes_undestroyed ON sandboxes (state, memory_mib) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_ended ON sandboxes (room_uid, sandbox_id) WHERE state = 'destroyed';
CREATE INDEX ssh_accesses_by_sandbox ON ssh_accesses (sandbox_id, access_id);
CREATE INDEX ssh_accesses_by_expiry ON ssh_accesses (expires_at);
CREATE UNIQUE INDEX ports_by_sandbox ON ports (sandbox_id, port);
