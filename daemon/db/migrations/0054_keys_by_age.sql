-- How many keys an organization has made lately is counted with each that it makes: their ids begin with their time.
DROP INDEX api_keys_by_org;
CREATE INDEX api_keys_by_org ON api_keys (org_id, key_id);
