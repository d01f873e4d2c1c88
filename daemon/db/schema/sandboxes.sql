-- Sandboxes, and their adoption by a daemon that starts.

CREATE TABLE sandboxes (
  sandbox_id           TEXT PRIMARY KEY,
  room_uid             TEXT NOT NULL REFERENCES rooms (room_uid),
  org_id               TEXT NOT NULL REFERENCES orgs (org_id),
  agent_id             TEXT NOT NULL,
  guest_cid            INTEGER NOT NULL CHECK (guest_cid BETWEEN 9100 AND 9999),
  -- Held until the process of the guest is reaped.
  cid_held             INTEGER NOT NULL,
  template_id          TEXT NOT NULL,
  template_digest      TEXT,
  vcpu_count           INTEGER NOT NULL,
  memory_mib           INTEGER NOT NULL,
  -- Maximum size of the own disk.
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
  -- Whether the sandbox has a network, whatever its allowlist.
  guest_net            INTEGER NOT NULL,
  fabric_attached      INTEGER NOT NULL,
  labels               TEXT NOT NULL,
  idle_timeout_seconds INTEGER,
  -- Action when the sandbox is idle, and the events that wake it, as JSON.
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
  -- Fault of the drive in the sandbox, as a sentence; null: none.
  drive_fault          TEXT,
  created_by_type      TEXT NOT NULL,
  created_by_id        TEXT NOT NULL,
  -- Snapshot that the sandbox was made from, or the last one that was taken of it.
  snapshot_id          TEXT
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sandboxes_by_cid ON sandboxes (guest_cid) WHERE cid_held = 1;

-- The live sandbox of an agent, and all of a room and of an agent.
CREATE UNIQUE INDEX sandboxes_by_live_agent ON sandboxes (room_uid, agent_id) WHERE state NOT IN ('failed', 'destroyed');
CREATE INDEX sandboxes_by_room ON sandboxes (room_uid, sandbox_id);
CREATE INDEX sandboxes_by_agent ON sandboxes (room_uid, agent_id, sandbox_id);

-- Sandboxes that exist on the host, for metrics and reconciliation; ended ones, whose rows are to be removed; live ones, for quotas.
CREATE INDEX sandboxes_undestroyed ON sandboxes (state, memory_mib) WHERE state <> 'destroyed';
CREATE INDEX sandboxes_ended ON sandboxes (room_uid, sandbox_id) WHERE state = 'destroyed';
CREATE INDEX sandboxes_by_live_org ON sandboxes (org_id, room_uid, state, status_reason, memory_mib, disk_mib) WHERE state NOT IN ('failed', 'destroyed');

-- Adoptions that may crash the service: recorded before each, until the service has run for a while.
CREATE TABLE adoptions (
  sandbox_id TEXT PRIMARY KEY,
  -- Crashes of the service during the adoption.
  crashes    INTEGER NOT NULL,
  -- Whether the adoption runs, or ended a moment ago.
  under_way  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
