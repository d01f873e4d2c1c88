-- Rewrites of tables that are under way in the background, or wait for it. One that is over has no row.

CREATE TABLE fills (
  name     TEXT NOT NULL PRIMARY KEY,
  -- Key of the last row that is rewritten, as a JSON array; null: none is.
  last_key TEXT
) STRICT, WITHOUT ROWID;
