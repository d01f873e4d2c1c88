-- What organizations have used, each day in UTC. It only grows, and stays when the room, the sandbox and the audit are gone.
CREATE TABLE usage (
  org_id           TEXT NOT NULL,
  day              TEXT NOT NULL,
  room_uid         TEXT NOT NULL,
  -- Of whom it is: '' where it is no agent's, or no key's.
  agent_id         TEXT NOT NULL,
  key_id           TEXT NOT NULL,
  sandbox_ms       INTEGER NOT NULL,
  vcpu_ms          INTEGER NOT NULL,
  memory_mib_ms    INTEGER NOT NULL,
  exec_count       INTEGER NOT NULL,
  messages         INTEGER NOT NULL,
  egress_bytes     INTEGER NOT NULL,
  drive_byte_hours INTEGER NOT NULL,
  PRIMARY KEY (org_id, day, room_uid, agent_id, key_id)
) STRICT, WITHOUT ROWID;

-- What is being used just now, by whom, and up to when it is among the above.
CREATE TABLE usage_open (
  -- A sandbox that is running, or a room whose drive has something on it.
  subject     TEXT PRIMARY KEY,
  org_id      TEXT NOT NULL,
  room_uid    TEXT NOT NULL,
  agent_id    TEXT NOT NULL,
  key_id      TEXT NOT NULL,
  vcpu_count  INTEGER NOT NULL,
  memory_mib  INTEGER NOT NULL,
  drive_bytes INTEGER NOT NULL,
  -- The moment, by the clock and by what the host has been up: only the latter tells how long something took.
  wall_ms     INTEGER NOT NULL,
  uptime_ms   INTEGER NOT NULL,
  boot_id     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_open_by_org ON usage_open (org_id);
