-- What is amiss with the drive in a sandbox, for people; null when nothing is.
ALTER TABLE sandboxes ADD COLUMN drive_fault TEXT;
