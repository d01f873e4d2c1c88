-- Webhooks, which hosts share, and their progress in the audit chain of this host.

CREATE TABLE webhooks (
  webhook_id      TEXT PRIMARY KEY,
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  -- Encrypted, since a URL often contains a secret of the receiver; the key is a file beside the database.
  sealed_url      TEXT NOT NULL,
  -- Prefixes of event names, as JSON.
  types           TEXT NOT NULL,
  -- Names of rooms, as JSON; null: all rooms.
  room_ids        TEXT,
  disabled_reason TEXT,
  disabled_at     TEXT,
  -- The secret is derived from this number and a key beside the database.
  secret_number   INTEGER NOT NULL,
  -- End of the time in which the previous secret signs as well.
  former_until    TEXT,
  created_at      TEXT NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  -- Moment at which the receiver changed or was enabled again.
  renewed_at      TEXT NOT NULL,
  -- Start of the events that a host sends which has sent none yet.
  begins_at       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_org ON webhooks (org_id, webhook_id);

CREATE TABLE webhook_progress (
  webhook_id    TEXT PRIMARY KEY,
  -- Last record of the chain that was handled.
  seq           INTEGER NOT NULL,
  sent_count    INTEGER NOT NULL,
  missed_count  INTEGER NOT NULL,
  failed_count  INTEGER NOT NULL,
  last_sent_at  TEXT,
  failing_since TEXT,
  -- The renewal of the webhook that this progress belongs to.
  renewed_at    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Events that failed at the first attempt or are sent again. Without a foreign key: a webhook that another host deletes is deleted here
-- first.
CREATE TABLE webhook_deliveries (
  webhook_id      TEXT NOT NULL,
  -- The audit_id of the record.
  delivery_id     TEXT NOT NULL,
  -- Position in the chain.
  seq             INTEGER NOT NULL,
  type            TEXT NOT NULL,
  event_at        TEXT NOT NULL,
  state           TEXT NOT NULL,
  -- Determines the time of the next attempt.
  attempts        INTEGER NOT NULL,
  last_attempt_at TEXT,
  -- Null: no further attempt.
  next_at         TEXT,
  status          INTEGER,
  error           TEXT,
  PRIMARY KEY (webhook_id, delivery_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_next ON webhook_deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL;
