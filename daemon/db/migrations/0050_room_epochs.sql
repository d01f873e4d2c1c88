-- In which epoch this host has had a room: what the database of several hosts says of an older one, it has forgotten.
ALTER TABLE rooms ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
UPDATE rooms SET epoch = placements.epoch
  FROM placements WHERE placements.room_uid = rooms.room_uid AND placements.host_id = rooms.host_id;
