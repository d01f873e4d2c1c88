-- What of all that there ever was is still there, on the whole host: figures and the comparison with the host ask for it.
CREATE INDEX sandboxes_undestroyed ON sandboxes (state, memory_mib) WHERE state <> 'destroyed';
