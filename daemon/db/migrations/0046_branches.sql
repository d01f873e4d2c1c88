-- A room that was turned back, or made from a checkpoint: its order goes on after last_seq, and what it had then is as new as that moment.
ALTER TABLE message_rooms ADD COLUMN last_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE message_rooms ADD COLUMN branched_at_ms INTEGER NOT NULL DEFAULT 0;
-- The name of a call's work where it does not follow from the row: the call was made in another room.
ALTER TABLE idempotency ADD COLUMN work_ulid TEXT;
