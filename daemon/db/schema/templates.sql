-- Template builds of organizations, and their events as far as they are kept: lines of output and changes of state.

CREATE TABLE template_builds (
  build_id    TEXT NOT NULL PRIMARY KEY,
  org_id      TEXT NOT NULL,
  template_id TEXT NOT NULL,
  state       TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  started_at  TEXT,
  finished_at TEXT,
  digest      TEXT,
  failure     TEXT,
  last_seq    INTEGER NOT NULL
) STRICT;
CREATE INDEX template_builds_by_org ON template_builds (org_id, build_id);
CREATE INDEX template_builds_unfinished ON template_builds (org_id) WHERE finished_at IS NULL;

CREATE TABLE template_build_events (
  build_id TEXT NOT NULL,
  seq      INTEGER NOT NULL,
  at       TEXT NOT NULL,
  state    TEXT,
  line     TEXT,
  PRIMARY KEY (build_id, seq)
) STRICT, WITHOUT ROWID;
