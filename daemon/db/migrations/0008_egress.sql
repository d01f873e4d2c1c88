-- Whether the sandbox has a network at all, whatever its list.
ALTER TABLE sandboxes ADD COLUMN guest_net INTEGER NOT NULL DEFAULT 1;

-- What sandboxes sent to the outside and received from it; stays when they are gone.
CREATE TABLE egress_usage (
  sandbox_id     TEXT PRIMARY KEY,
  org_id         TEXT NOT NULL REFERENCES orgs (org_id),
  room_uid       TEXT NOT NULL,
  sent_bytes     INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  connections    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
