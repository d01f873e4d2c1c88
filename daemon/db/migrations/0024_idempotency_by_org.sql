-- The oldest calls of an organization: those of over a day ago go, and the oldest of too many.
DROP INDEX idempotency_by_age;
CREATE INDEX idempotency_by_org ON idempotency (org_id, created_at);
