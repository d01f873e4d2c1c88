-- What a maker has made ends in the transaction that ends the maker's access: a port is marked, and found by its organization.
ALTER TABLE ports ADD COLUMN ended_at TEXT;
CREATE INDEX ports_by_org ON ports (org_id, ends_with) WHERE ended_at IS NULL AND ends_with IS NOT NULL;
CREATE INDEX api_keys_granted ON api_keys (org_id, created_by_id) WHERE kind = 'oauth' AND revoked_at IS NULL;
