-- Which kept drive is to be erased next, however many there are.
CREATE INDEX rooms_by_drive_until ON rooms (drive_until_at) WHERE drive_until_at IS NOT NULL;
