-- What an organization has used by the price table of the time, in millionths of a credit, and what the operator has granted it.
CREATE TABLE org_credits (
  org_id       TEXT PRIMARY KEY,
  used_micro   INTEGER NOT NULL,
  -- Beside those of its plan; null: nothing was granted, and without any of its plan it has no limit.
  granted      INTEGER,
  -- Since when none are left.
  exhausted_at TEXT
) STRICT, WITHOUT ROWID;
