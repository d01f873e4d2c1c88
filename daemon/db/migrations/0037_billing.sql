-- What the payment service says of an organization that has bought a plan; written anew each time it is asked.
CREATE TABLE billing_customers (
  org_id          TEXT NOT NULL PRIMARY KEY,
  customer_id     TEXT NOT NULL UNIQUE,
  subscription_id TEXT,
  status          TEXT NOT NULL,
  period_end      TEXT,
  cancels_at_end  INTEGER NOT NULL,
  past_due_since  TEXT,
  -- Whether the plan that the organization has is this subscription's.
  gave_plan       INTEGER NOT NULL,
  asked_at        TEXT NOT NULL
) STRICT;
-- That something has changed there: kept before it is answered, and seen to afterwards.
CREATE TABLE billing_events (
  event_id    TEXT NOT NULL PRIMARY KEY,
  customer_id TEXT,
  checkout_id TEXT,
  received_at TEXT NOT NULL,
  done_at     TEXT
) STRICT;
CREATE INDEX billing_events_open ON billing_events (received_at) WHERE done_at IS NULL;
-- Who was sent to pay, and the one key that came of it.
CREATE TABLE billing_checkouts (
  checkout_id TEXT NOT NULL PRIMARY KEY,
  org_id      TEXT NOT NULL,
  user_id     TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  key_id      TEXT
) STRICT;
CREATE INDEX billing_checkouts_by_org ON billing_checkouts (org_id, created_at);
