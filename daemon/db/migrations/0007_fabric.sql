-- Who has taken part in a room's fabric, with or without a sandbox.
CREATE TABLE agents (
  room_uid     TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  topics       TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  PRIMARY KEY (room_uid, agent_id)
) STRICT, WITHOUT ROWID;

-- The newest sandbox of an agent, also one that is destroyed.
CREATE INDEX sandboxes_by_agent ON sandboxes (room_uid, agent_id, sandbox_id);

-- Payloads are large: a table with rows of their own keeps its indexes small.
CREATE TABLE messages (
  room_uid      TEXT NOT NULL,
  seq           INTEGER NOT NULL,
  message_id    TEXT NOT NULL,
  source        TEXT NOT NULL,
  destination   TEXT,
  destinations  TEXT,
  topic         TEXT,
  kind          TEXT NOT NULL CHECK (kind IN ('event', 'request', 'response')),
  payload       TEXT,
  payload_b64   TEXT,
  size_bytes    INTEGER NOT NULL,
  headers       TEXT NOT NULL,
  reply_to      TEXT,
  ack_required  INTEGER NOT NULL,
  -- By whom it was to be received when it was sent.
  recipients    TEXT NOT NULL,
  -- What was asked for, to know the same request again.
  fingerprint   TEXT NOT NULL,
  created_at    TEXT NOT NULL,
  expires_at    TEXT,
  PRIMARY KEY (room_uid, seq)
) STRICT;
CREATE UNIQUE INDEX messages_by_id ON messages (room_uid, message_id);
CREATE INDEX messages_by_request ON messages (room_uid, reply_to) WHERE reply_to IS NOT NULL;

CREATE TABLE deliveries (
  room_uid     TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'read', 'acked', 'undeliverable', 'expired')),
  attempts     INTEGER NOT NULL,
  ack_required INTEGER NOT NULL,
  -- When it comes again, or expires, in unix milliseconds.
  due_at_ms    INTEGER,
  expires_at_ms INTEGER,
  PRIMARY KEY (room_uid, agent_id, seq)
) STRICT, WITHOUT ROWID;
-- The inboxes.
CREATE INDEX deliveries_open ON deliveries (room_uid, agent_id, seq) WHERE state IN ('queued', 'delivered');
CREATE INDEX deliveries_due ON deliveries (due_at_ms) WHERE due_at_ms IS NOT NULL;

CREATE TABLE barriers (
  room_uid     TEXT NOT NULL,
  barrier_id   TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('waiting', 'released', 'broken', 'cancelled')),
  parties      INTEGER NOT NULL,
  participants TEXT,
  -- In order of arrival.
  arrived      TEXT NOT NULL,
  -- The participants by whose end it was broken.
  dead         TEXT NOT NULL,
  opened_at    TEXT NOT NULL,
  ended_at     TEXT,
  PRIMARY KEY (room_uid, barrier_id, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX barriers_waiting ON barriers (room_uid) WHERE state = 'waiting';
