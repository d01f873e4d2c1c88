-- What becomes of the drive of a room that is being destroyed: whoever destroys it said so before anything was done.
ALTER TABLE rooms ADD COLUMN keep_drive INTEGER NOT NULL DEFAULT 1;
