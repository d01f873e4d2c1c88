-- Each host compares what is said of it every second.
CREATE INDEX placements_by_host ON placements (host_id);
