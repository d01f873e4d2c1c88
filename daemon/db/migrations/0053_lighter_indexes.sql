-- Keys that are good are counted with each that is made; those that have ended may be many more.
CREATE INDEX api_keys_open ON api_keys (org_id, expires_at, revoked_at) WHERE revoked_at IS NULL;

-- Without the bytes, which change with every message: they are read of the row.
DROP INDEX message_rooms_by_org;
CREATE INDEX message_rooms_by_org ON message_rooms (org_id);
