-- A sandbox that hibernates has no guest CID until it is resumed.
UPDATE sandboxes SET cid_held = 0 WHERE state = 'hibernated';
