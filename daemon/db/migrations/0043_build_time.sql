-- How long templates were built for organizations.
ALTER TABLE usage ADD COLUMN build_ms INTEGER NOT NULL DEFAULT 0;
