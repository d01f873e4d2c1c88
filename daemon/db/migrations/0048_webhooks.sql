-- URLs to which organizations' events are sent. What is to be sent is the audit's chain: a webhook is a place in it.
CREATE TABLE webhooks (
  webhook_id      TEXT PRIMARY KEY,
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  url             TEXT NOT NULL,
  -- Beginnings of events' names, in JSON.
  types           TEXT NOT NULL,
  -- Names of rooms, in JSON; NULL: all.
  room_ids        TEXT,
  disabled_reason TEXT,
  disabled_at     TEXT,
  -- The secret is made of this number and a key beside the database.
  secret_number   INTEGER NOT NULL,
  -- Until when the secret before it signs too.
  former_until    TEXT,
  created_at      TEXT NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id   TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  -- The last record of the chain that was dealt with.
  seq             INTEGER NOT NULL,
  sent_count      INTEGER NOT NULL,
  missed_count    INTEGER NOT NULL,
  failed_count    INTEGER NOT NULL,
  last_sent_at    TEXT,
  failing_since   TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_org ON webhooks (org_id, webhook_id);
-- Events that were not taken the first time, or are sent again.
CREATE TABLE webhook_deliveries (
  webhook_id      TEXT NOT NULL REFERENCES webhooks (webhook_id),
  -- The record's audit_id.
  delivery_id     TEXT NOT NULL,
  -- Its place in the chain.
  seq             INTEGER NOT NULL,
  type            TEXT NOT NULL,
  event_at        TEXT NOT NULL,
  state           TEXT NOT NULL,
  -- Of these tries it depends when the next one is.
  attempts        INTEGER NOT NULL,
  last_attempt_at TEXT,
  -- NULL: it is over.
  next_at         TEXT,
  status          INTEGER,
  error           TEXT,
  PRIMARY KEY (webhook_id, delivery_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_next ON webhook_deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL;
