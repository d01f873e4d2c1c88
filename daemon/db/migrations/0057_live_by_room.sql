-- Quotas count live sandboxes by room.
DROP INDEX sandboxes_by_live_org;
CREATE INDEX sandboxes_by_live_org ON sandboxes (org_id, room_uid, state, memory_mib, disk_mib) WHERE state NOT IN ('failed', 'destroyed');
