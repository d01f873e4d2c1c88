-- Calls that are counted instead of recorded one by one: those of an organization that has had its records of the day. What is alike
-- is one row, until a record tells of it. '' stands for what has no room, agent, actor or error.
CREATE TABLE audit_counts (
  org_key    TEXT NOT NULL,
  event      TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  room_uid   TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  actor_id   TEXT NOT NULL,
  error_code TEXT NOT NULL,
  count      INTEGER NOT NULL,
  first_at   TEXT NOT NULL,
  last_at    TEXT NOT NULL,
  -- The last of them, as it would have been recorded.
  last_entry TEXT NOT NULL,
  PRIMARY KEY (org_key, event, outcome, room_uid, agent_id, actor_id, error_code)
) STRICT, WITHOUT ROWID;
