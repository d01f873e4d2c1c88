-- Agents, messages and barriers. Their column room_uid is a key of rows.

-- Keys of the rows of rooms that were restored, or came from another host; other rooms have their uid as the key.
CREATE TABLE room_rows (
  room_uid TEXT PRIMARY KEY,
  rows_key TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX room_rows_by_key ON room_rows (rows_key);

-- Agents that have used the fabric of a room, with or without a sandbox.
CREATE TABLE agents (
  room_uid     TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  topics       TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  PRIMARY KEY (room_uid, agent_id)
) STRICT, WITHOUT ROWID;

-- Payloads are large: a table with a rowid keeps its indexes small.
CREATE TABLE messages (
  room_uid     TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  message_id   TEXT NOT NULL,
  source       TEXT NOT NULL,
  destination  TEXT,
  destinations TEXT,
  topic        TEXT,
  kind         TEXT NOT NULL CHECK (kind IN ('event', 'request', 'response')),
  payload      TEXT,
  payload_b64  TEXT,
  size_bytes   INTEGER NOT NULL,
  headers      TEXT NOT NULL,
  reply_to     TEXT,
  ack_required INTEGER NOT NULL,
  -- Recipients at the time of sending, as JSON.
  recipients   TEXT NOT NULL,
  -- Hash of the request, by which a repeated request is recognized.
  fingerprint  TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  expires_at   TEXT,
  PRIMARY KEY (room_uid, seq)
) STRICT;
CREATE UNIQUE INDEX messages_by_id ON messages (room_uid, message_id);
CREATE INDEX messages_by_request ON messages (room_uid, reply_to) WHERE reply_to IS NOT NULL;

-- Inboxes.
CREATE TABLE deliveries (
  room_uid      TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  seq           INTEGER NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'read', 'acked', 'undeliverable', 'expired')),
  attempts      INTEGER NOT NULL,
  ack_required  INTEGER NOT NULL,
  -- Moment of the next delivery or of expiry, in Unix milliseconds.
  due_at_ms     INTEGER,
  expires_at_ms INTEGER,
  -- Whether the sender waits for a reply of this recipient.
  awaited       INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (room_uid, agent_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_open ON deliveries (room_uid, agent_id, seq) WHERE state IN ('queued', 'delivered');
CREATE INDEX deliveries_due ON deliveries (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX deliveries_awaited ON deliveries (room_uid, seq, agent_id) WHERE awaited = 1;

-- Bytes of the messages of a room, which count for the budget of its organization. The index is without the bytes, which change with each
-- message.
CREATE TABLE message_rooms (
  room_uid       TEXT PRIMARY KEY,
  org_id         TEXT NOT NULL,
  bytes          INTEGER NOT NULL,
  -- Last message that was removed to free space of the organization; 0: none.
  gone_seq       INTEGER NOT NULL,
  -- Last number before the room was restored or made from a checkpoint, and the moment of that; 0: never.
  last_seq       INTEGER NOT NULL DEFAULT 0,
  branched_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX message_rooms_by_org ON message_rooms (org_id);

-- Messages whose deliveries are written in several commits, ahead of the message.
CREATE TABLE message_spreads (
  room_uid TEXT NOT NULL PRIMARY KEY,
  -- First of these messages; the room has no later one.
  seq      INTEGER NOT NULL,
  -- Agents with a delivery of any of them, as JSON.
  agents   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE barriers (
  room_uid     TEXT NOT NULL,
  barrier_id   TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  state        TEXT NOT NULL CHECK (state IN ('waiting', 'released', 'broken', 'cancelled')),
  parties      INTEGER NOT NULL,
  participants TEXT,
  -- In order of arrival, as JSON.
  arrived      TEXT NOT NULL,
  -- Participants whose end broke the barrier, as JSON.
  dead         TEXT NOT NULL,
  opened_at    TEXT NOT NULL,
  ended_at     TEXT,
  PRIMARY KEY (room_uid, barrier_id, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX barriers_waiting ON barriers (room_uid) WHERE state = 'waiting';
