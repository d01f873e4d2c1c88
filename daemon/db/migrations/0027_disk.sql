-- The most that a sandbox's own disk can take; of sandboxes from before this is known it is not counted.
ALTER TABLE sandboxes ADD COLUMN disk_mib INTEGER NOT NULL DEFAULT 0;
DROP INDEX sandboxes_by_live_org;
CREATE INDEX sandboxes_by_live_org ON sandboxes (org_id, memory_mib, disk_mib) WHERE state NOT IN ('failed', 'destroyed');
