-- Records of the audit, of the open days in the database and of a closed day in its file.

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
