-- Of several hosts each sends what happens on it: webhooks are true for the service as a whole, how far one has come is of each host.
DROP INDEX webhooks_by_org;
-- Their URLs are in plain words: the daemon seals them when it takes these over, and then there are none.
ALTER TABLE webhooks RENAME TO webhooks_former;
CREATE TABLE webhooks (
  webhook_id      TEXT PRIMARY KEY,
  org_id          TEXT NOT NULL REFERENCES orgs (org_id),
  -- What is in it is often a secret of the receiver's: the key lies beside the database.
  sealed_url      TEXT NOT NULL,
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
  -- When its receiver became another, or was last given another chance.
  renewed_at      TEXT NOT NULL,
  -- What has happened on a host since then is sent, where that host has sent nothing yet.
  begins_at       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_org ON webhooks (org_id, webhook_id);
-- What this host has sent of its chain.
CREATE TABLE webhook_progress (
  webhook_id      TEXT PRIMARY KEY,
  -- The last record of the chain that was dealt with.
  seq             INTEGER NOT NULL,
  sent_count      INTEGER NOT NULL,
  missed_count    INTEGER NOT NULL,
  failed_count    INTEGER NOT NULL,
  last_sent_at    TEXT,
  failing_since   TEXT,
  -- The renewal of the webhook that was followed.
  renewed_at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Without a reference: a webhook that is deleted on another host is gone here first.
CREATE TABLE webhook_deliveries_new (
  webhook_id      TEXT NOT NULL,
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
INSERT INTO webhook_deliveries_new SELECT * FROM webhook_deliveries;
DROP TABLE webhook_deliveries;
ALTER TABLE webhook_deliveries_new RENAME TO webhook_deliveries;
-- Of several hosts: what others have shared of this table meanwhile was left out here, so the copy is made anew.
UPDATE mirror SET change_id = 'before 0051';
CREATE INDEX webhook_deliveries_by_next ON webhook_deliveries (webhook_id, next_at) WHERE next_at IS NOT NULL;
