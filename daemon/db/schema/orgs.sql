-- Organizations and the groups that read their templates.

CREATE TABLE orgs (
  org_id     TEXT PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  plan       TEXT NOT NULL,
  created_at TEXT NOT NULL,
  -- Beginning of the end of the organization, and the moment at which all of it was gone. The row stays for the records that name it.
  ending_at  TEXT,
  ended_at   TEXT,
  -- operator or the subscription. A plan that the operator has set does not end with a subscription.
  plan_by    TEXT NOT NULL DEFAULT 'operator'
) STRICT, WITHOUT ROWID;
CREATE INDEX orgs_ending ON orgs (ending_at) WHERE ending_at IS NOT NULL AND ended_at IS NULL;

-- Group of the templates of an organization, as a number above the computed ids of guest processes. No number is used twice.
CREATE TABLE template_groups (
  org_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE
) STRICT;
