-- The events of a room are numbered by the chain of the host that it is on. Where it has moved, from which number on each of its stays
-- here counts: after the record `seq` of the chain comes the event after `id`. What is known of its former hosts' begins after `since`.
CREATE TABLE room_stays (
  room_uid TEXT    NOT NULL,
  seq      INTEGER NOT NULL,
  id       INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  PRIMARY KEY (room_uid, seq)
) WITHOUT ROWID;

-- Its newest events from before it came, for readers who have not had them: records of other chains, which no chain of this host has.
CREATE TABLE room_former_events (
  room_uid TEXT    NOT NULL,
  id       INTEGER NOT NULL,
  at       TEXT    NOT NULL,
  record   TEXT    NOT NULL,
  PRIMARY KEY (room_uid, id)
) WITHOUT ROWID;
CREATE INDEX room_former_events_by_age ON room_former_events (at);
