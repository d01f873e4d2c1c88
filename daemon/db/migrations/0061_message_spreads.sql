-- Messages to many agents whose deliveries are written some at a time, ahead of the messages.
CREATE TABLE message_spreads (
  room_uid TEXT NOT NULL PRIMARY KEY,
  -- Of the first of these messages; the room has no later one.
  seq      INTEGER NOT NULL,
  -- Agents with a delivery of any of them, as JSON.
  agents   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
