-- Sandboxes whose being taken over may crash the service: noted before each is touched, until the service has lived on for a while.
CREATE TABLE adoptions (
  sandbox_id TEXT PRIMARY KEY,
  -- How often the service has crashed meanwhile.
  crashes    INTEGER NOT NULL,
  -- Whether it is being taken over, or has just been.
  under_way  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
