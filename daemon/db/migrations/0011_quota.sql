-- What an organization's guests that have not ended take of its plan.
CREATE INDEX sandboxes_by_live_org ON sandboxes (org_id, memory_mib) WHERE state NOT IN ('failed', 'destroyed');
