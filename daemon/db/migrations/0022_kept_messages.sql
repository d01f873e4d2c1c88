-- What the messages of each room take together: every organization has a budget for its own.
CREATE TABLE message_rooms (
  room_uid TEXT PRIMARY KEY,
  org_id   TEXT NOT NULL,
  bytes    INTEGER NOT NULL,
  -- The last message that went because the organization wanted its space; 0: none.
  gone_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX message_rooms_by_org ON message_rooms (org_id, bytes);
INSERT INTO message_rooms
SELECT room_uid, org_id,
  sum(512 + ifnull(octet_length(payload), 0) + ifnull(octet_length(payload_b64), 0) + octet_length(headers)
    + octet_length(ifnull(destinations, 'null')) + 3 * octet_length(recipients) + 120 * json_array_length(recipients)),
  0
FROM messages JOIN rooms USING (room_uid) GROUP BY room_uid;
