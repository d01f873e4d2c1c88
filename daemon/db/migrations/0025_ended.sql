-- What has ended: rows of rooms and sandboxes that nobody asks for any more go.
CREATE INDEX rooms_ended ON rooms (org_id, last_transition_at) WHERE state = 'destroyed';
CREATE INDEX sandboxes_ended ON sandboxes (room_uid, sandbox_id) WHERE state = 'destroyed';
