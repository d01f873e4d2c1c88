-- Customers, checkouts and events of the payment provider.

-- State of a subscription, replaced by each answer of the provider.
CREATE TABLE billing_customers (
  org_id          TEXT NOT NULL PRIMARY KEY,
  customer_id     TEXT NOT NULL UNIQUE,
  subscription_id TEXT,
  status          TEXT NOT NULL,
  period_end      TEXT,
  cancels_at_end  INTEGER NOT NULL,
  past_due_since  TEXT,
  -- Whether the plan that the organization has is this subscription's.
  asked_at        TEXT NOT NULL,
  -- End of the last period that was paid.
  paid_until      TEXT
) STRICT;

-- Events are stored before they are acknowledged, and processed later.
CREATE TABLE billing_events (
  event_id    TEXT NOT NULL PRIMARY KEY,
  customer_id TEXT,
  received_at TEXT NOT NULL,
  done_at     TEXT
) STRICT;
CREATE INDEX billing_events_open ON billing_events (received_at) WHERE done_at IS NULL;

-- Checkouts, each with the one key that it has made.
CREATE TABLE billing_checkouts (
  checkout_id TEXT NOT NULL PRIMARY KEY,
  org_id      TEXT NOT NULL,
  user_id     TEXT NOT NULL,
  created_at  TEXT NOT NULL,
  key_id      TEXT
) STRICT;
CREATE INDEX billing_checkouts_by_org ON billing_checkouts (org_id, created_at);
