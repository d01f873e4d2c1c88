-- Small facts about the database itself.
CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE orgs (
  org_id     TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  plan       TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A key itself is never stored: its SHA-256 and the first characters, for people to tell keys apart.
CREATE TABLE api_keys (
  key_id       TEXT PRIMARY KEY,
  org_id       TEXT REFERENCES orgs (org_id),
  kind         TEXT NOT NULL CHECK (kind IN ('api', 'operator')),
  name         TEXT NOT NULL,
  key_sha256   TEXT NOT NULL UNIQUE,
  key_prefix   TEXT NOT NULL,
  scopes       TEXT NOT NULL,
  room_ids     TEXT,
  agent_id     TEXT,
  created_at   TEXT NOT NULL,
  expires_at   TEXT,
  revoked_at   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_org ON api_keys (org_id);

CREATE TABLE rooms (
  room_uid           TEXT PRIMARY KEY,
  room_id            TEXT NOT NULL,
  org_id             TEXT NOT NULL REFERENCES orgs (org_id),
  host_id            TEXT NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('active', 'destroying', 'destroyed')),
  status_reason      TEXT NOT NULL,
  status_message     TEXT NOT NULL,
  last_transition_at TEXT NOT NULL,
  labels             TEXT NOT NULL,
  drive_limit_bytes  INTEGER NOT NULL,
  drive_until_at     TEXT,
  created_at         TEXT NOT NULL,
  updated_at         TEXT NOT NULL,
  expires_at         TEXT,
  created_by_type    TEXT NOT NULL,
  created_by_id      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rooms_by_live_name ON rooms (org_id, room_id) WHERE state <> 'destroyed';
CREATE INDEX rooms_by_org ON rooms (org_id, room_uid);

CREATE TABLE sandboxes (
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
  state                TEXT NOT NULL CHECK (state IN ('creating', 'starting', 'running', 'pausing', 'paused', 'resuming',
                         'failed', 'destroying', 'destroyed')),
  status_reason        TEXT NOT NULL,
  status_message       TEXT NOT NULL,
  last_transition_at   TEXT NOT NULL,
  exit_cause           TEXT,
  exit_at              TEXT,
  env                  TEXT NOT NULL,
  egress_mode          TEXT NOT NULL CHECK (egress_mode IN ('none', 'allowlist', 'public')),
  egress_allowlist     TEXT NOT NULL,
  egress_revision      INTEGER NOT NULL,
  fabric_attached      INTEGER NOT NULL,
  labels               TEXT NOT NULL,
  idle_timeout_seconds INTEGER,
  max_duration_seconds INTEGER,
  created_at           TEXT NOT NULL,
  started_at           TEXT,
  ready_at             TEXT,
  stopped_at           TEXT,
  expires_at           TEXT,
  create_wall_ms       INTEGER,
  boot                 TEXT NOT NULL,
  start_mode           TEXT,
  created_by_type      TEXT NOT NULL,
  created_by_id        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sandboxes_by_cid ON sandboxes (guest_cid) WHERE cid_held = 1;
CREATE UNIQUE INDEX sandboxes_by_live_agent ON sandboxes (room_uid, agent_id) WHERE state NOT IN ('failed', 'destroyed');
CREATE INDEX sandboxes_by_room ON sandboxes (room_uid, sandbox_id);

-- One hash chain per organization; org_key '' is the chain of what belongs to none.
CREATE TABLE audit (
  org_key     TEXT NOT NULL,
  seq         INTEGER NOT NULL,
  audit_id    TEXT NOT NULL,
  event       TEXT NOT NULL,
  outcome     TEXT NOT NULL CHECK (outcome IN ('success', 'denied', 'error')),
  at          TEXT NOT NULL,
  org_id      TEXT,
  room_id     TEXT,
  room_uid    TEXT,
  agent_id    TEXT,
  sandbox_id  TEXT,
  actor_type  TEXT NOT NULL,
  actor_id    TEXT NOT NULL,
  actor_name  TEXT NOT NULL,
  source      TEXT NOT NULL,
  request_id  TEXT,
  ip          TEXT,
  status      INTEGER,
  error_code  TEXT,
  duration_ms REAL,
  details     TEXT NOT NULL,
  prev_hash   TEXT NOT NULL,
  hash        TEXT NOT NULL,
  PRIMARY KEY (org_key, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_room ON audit (room_uid, seq) WHERE room_uid IS NOT NULL;

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;
CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit
BEGIN
  SELECT RAISE(ABORT, 'the audit is append-only');
END;

-- Answers that are given again to the same request.
CREATE TABLE idempotency (
  key_id          TEXT NOT NULL,
  method          TEXT NOT NULL,
  path            TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_sha256     TEXT NOT NULL,
  -- Null while the first request is still running.
  status          INTEGER,
  reply           TEXT,
  created_at      TEXT NOT NULL,
  PRIMARY KEY (key_id, method, path, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
