-- Accounts elsewhere whose person was a member and is not to be made one again by signing in with them.
CREATE TABLE departed_subjects (
  subject_sha256 TEXT NOT NULL,
  org_id         TEXT NOT NULL,
  departed_at    TEXT NOT NULL,
  PRIMARY KEY (subject_sha256, org_id)
) STRICT, WITHOUT ROWID;
