-- Usage per day in UTC, and credits. Usage only grows, and stays when the room, the sandbox and the audit are gone.

CREATE TABLE usage (
  org_id           TEXT NOT NULL,
  day              TEXT NOT NULL,
  room_uid         TEXT NOT NULL,
  -- '' where the usage belongs to no agent, or to no key.
  agent_id         TEXT NOT NULL,
  key_id           TEXT NOT NULL,
  sandbox_ms       INTEGER NOT NULL,
  vcpu_ms          INTEGER NOT NULL,
  memory_mib_ms    INTEGER NOT NULL,
  exec_count       INTEGER NOT NULL,
  messages         INTEGER NOT NULL,
  egress_bytes     INTEGER NOT NULL,
  drive_byte_hours INTEGER NOT NULL,
  build_ms         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (org_id, day, room_uid, agent_id, key_id)
) STRICT, WITHOUT ROWID;

-- Usage that goes on, up to the moment at which it was last added to usage.
CREATE TABLE usage_open (
  -- A running sandbox, or a room whose drive is not empty.
  subject     TEXT NOT NULL UNIQUE,
  org_id      TEXT NOT NULL,
  room_uid    TEXT NOT NULL,
  agent_id    TEXT NOT NULL,
  key_id      TEXT NOT NULL,
  vcpu_count  INTEGER NOT NULL,
  memory_mib  INTEGER NOT NULL,
  drive_bytes INTEGER NOT NULL,
  -- The moment by the wall clock and by the uptime of the host: durations are differences of uptime.
  wall_ms     INTEGER NOT NULL,
  uptime_ms   INTEGER NOT NULL,
  boot_id     TEXT NOT NULL,
  PRIMARY KEY (org_id, room_uid, subject)
) STRICT, WITHOUT ROWID;

-- Credits that an organization has used on this host, in millionths.
CREATE TABLE org_credits (
  org_id       TEXT PRIMARY KEY,
  used_micro   INTEGER NOT NULL,
  -- Beginning of the time without credits; null: there are some, or the organization has no limit.
  exhausted_at TEXT
) STRICT, WITHOUT ROWID;

-- Credits that the operator has granted, valid on all hosts.
CREATE TABLE credit_grants (
  org_id  TEXT NOT NULL PRIMARY KEY,
  -- In addition to the credits of the plan. Without a row and without credits of the plan there is no limit.
  granted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Ledger of credits: each effect is a row with a name, so that none is entered twice. Spending is one row a day.
CREATE TABLE credit_ledger (
  entry_id     TEXT PRIMARY KEY,
  org_id       TEXT NOT NULL,
  at           TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('grant', 'withdrawal', 'spend')),
  -- Millionths of a credit; negative for what is spent or withdrawn.
  amount_micro INTEGER NOT NULL,
  reason       TEXT NOT NULL,
  effect       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX credit_ledger_by_effect ON credit_ledger (org_id, effect);
CREATE INDEX credit_ledger_by_org ON credit_ledger (org_id, entry_id);
