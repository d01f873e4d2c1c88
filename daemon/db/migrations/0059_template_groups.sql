-- The group that reads an organization's templates, by its place after the computed ids of guests' processes. No number is given twice.
CREATE TABLE template_groups (
  org_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE
) STRICT;
