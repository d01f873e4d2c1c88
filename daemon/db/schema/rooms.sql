-- Rooms, and the numbers of their events.

CREATE TABLE rooms (
  room_uid           TEXT PRIMARY KEY,
  room_id            TEXT NOT NULL,
  org_id             TEXT NOT NULL REFERENCES orgs (org_id),
  host_id            TEXT NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('active', 'destroying', 'destroyed')),
  status_reason      TEXT NOT NULL,
  status_message     TEXT NOT NULL,
  last_transition_at TEXT NOT NULL,
  labels             TEXT NOT NULL,
  drive_limit_bytes  INTEGER NOT NULL,
  drive_until_at     TEXT,
  created_at         TEXT NOT NULL,
  updated_at         TEXT NOT NULL,
  expires_at         TEXT,
  created_by_type    TEXT NOT NULL,
  created_by_id      TEXT NOT NULL,
  -- Whether the drive stays when the room is destroyed; set before the destruction begins.
  keep_drive         INTEGER NOT NULL DEFAULT 1,
  -- Names of the room in guests that were saved in other rooms, as JSON.
  former_ids         TEXT NOT NULL DEFAULT '[]',
  -- The branch that is being made of this room, as JSON: the next daemon finishes it.
  branching          TEXT,
  -- Increases with each host that takes the room. An older epoch of the directory is out of date.
  epoch              INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX rooms_by_live_name ON rooms (org_id, room_id) WHERE state <> 'destroyed';
CREATE INDEX rooms_by_org ON rooms (org_id, room_uid);
-- Live rooms are counted with each room and sandbox that is made: by the index alone, whatever number of rooms has ended.
CREATE INDEX rooms_live ON rooms (org_id, state) WHERE state <> 'destroyed';
CREATE INDEX rooms_branching ON rooms (org_id, room_uid) WHERE branching IS NOT NULL;

-- Kept drives of destroyed rooms, and rooms whose rows are to be removed.
CREATE INDEX rooms_by_kept_drive ON rooms (org_id) WHERE drive_until_at IS NOT NULL;
CREATE INDEX rooms_by_drive_until ON rooms (drive_until_at) WHERE drive_until_at IS NOT NULL;
CREATE INDEX rooms_ended ON rooms (org_id, last_transition_at) WHERE state = 'destroyed';

-- Events of a room are numbered by the chain of its host. For each stay of a room that has moved: the event after the record `seq` of the
-- chain has the number after `id`; events of its former hosts are known after `since`.
CREATE TABLE room_stays (
  room_uid TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  id       INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  PRIMARY KEY (room_uid, seq)
) WITHOUT ROWID;

-- The newest events of a room from before it moved here: records of the chains of other hosts.
CREATE TABLE room_former_events (
  room_uid TEXT NOT NULL,
  id       INTEGER NOT NULL,
  at       TEXT NOT NULL,
  record   TEXT NOT NULL,
  PRIMARY KEY (room_uid, id)
) WITHOUT ROWID;
CREATE INDEX room_former_events_by_age ON room_former_events (at);
