-- Whether the sender still waits for this recipient's reply: requests without a reply are found without a look at the others.
ALTER TABLE deliveries ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET awaited = 1 WHERE EXISTS (
  SELECT 1 FROM messages AS asked
  WHERE asked.room_uid = deliveries.room_uid AND asked.seq = deliveries.seq AND asked.kind = 'request'
    AND NOT EXISTS (
      SELECT 1 FROM messages AS reply
      WHERE reply.room_uid = asked.room_uid AND reply.reply_to = asked.message_id AND reply.kind = 'response'
        AND (asked.topic IS NOT NULL OR reply.source = deliveries.agent_id)
    )
);
CREATE INDEX deliveries_awaited ON deliveries (room_uid, seq, agent_id) WHERE awaited = 1;
