-- Who has given the plan: what the operator gives, no subscription's end takes away.
ALTER TABLE orgs ADD COLUMN plan_by TEXT NOT NULL DEFAULT 'operator';
UPDATE orgs SET plan_by = 'billing' WHERE org_id IN (SELECT org_id FROM billing_customers WHERE gave_plan = 1);
ALTER TABLE billing_customers DROP COLUMN gave_plan;
-- When the last period ends that was paid.
ALTER TABLE billing_customers ADD COLUMN paid_until TEXT;
-- Customers are made before they pay, so that a notice always names one.
ALTER TABLE billing_events DROP COLUMN checkout_id;
