-- Destroyed rooms whose drives are kept: few among all that there ever were.
CREATE INDEX rooms_by_kept_drive ON rooms (org_id) WHERE drive_until_at IS NOT NULL;
