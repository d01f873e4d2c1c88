-- Browsers that somebody has signed in by: who guesses elsewhere does not hold them up.
CREATE TABLE browsers (
  secret_sha256 TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX browsers_by_user ON browsers (user_id);
