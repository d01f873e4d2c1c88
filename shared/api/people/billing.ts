/** Interface of buying a plan: the plans, the checkout, and the resulting key. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "../contract.ts";
import { orgPath } from "../orgs.ts";
import { PLANS } from "./plans.ts";

const checkoutPath = fields({ ...orgPath.properties, checkout_id: Type.String({ maxLength: 255 }) });
const leadsTo = Type.String({ description: "URL to open in the browser, at the payment service." });

const billing = record("Billing", {
  provider: oneOf(["none", "stripe"], { description: "none: plans and credits come from the operator." }),
  plan: oneOf(PLANS),
  status: oneOf(["none", "active", "past_due", "ended", "pending"]),
  period_end: nullable(timestamp),
  cancels_at_end: Type.Boolean({ description: "Whether it ends with its period." }),
  plan_until: nullable(
    Type.String({ format: "date-time", description: "Currently known end of the plan; null: none." }),
  ),
  can_buy: Type.Boolean(),
});
export type BillingRecord = Static<typeof billing>;

export const billingGet = operation({
  name: "billing_get",
  extension: "billing",
  method: "GET",
  path: "/v1/orgs/{org_id}/billing",
  summary: "Show the organization's plan and subscription",
  access: "account",
  params: orgPath,
  query: NONE,
  body: null,
  output: billing,
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "billing.read",
});

export const billingCheckout = operation({
  name: "billing_checkout",
  extension: "billing",
  method: "POST",
  path: "/v1/orgs/{org_id}/billing/checkouts",
  summary: "Start a checkout for plan starter",
  description: "By an owner. The browser continues at the payment service and returns to /billing/success.",
  access: "account",
  wantsProof: true,
  params: orgPath,
  query: NONE,
  body: null,
  output: fields({ checkout_id: Type.String(), url: leadsTo }),
  outcomes: { created: 201 },
  errors: ["org_not_found", "insufficient_scope", "billing_off", "billing_failed", "invalid_state"],
  audit: "billing.checkout_begun",
});

export const billingPortal = operation({
  name: "billing_portal",
  extension: "billing",
  method: "POST",
  path: "/v1/orgs/{org_id}/billing/portal",
  summary: "Open cards, invoices and cancellation of a subscription",
  description: "By an owner of an organization that has paid before.",
  access: "account",
  wantsProof: true,
  params: orgPath,
  query: NONE,
  body: null,
  output: fields({ url: leadsTo }),
  outcomes: { created: 201 },
  errors: ["org_not_found", "insufficient_scope", "billing_off", "billing_failed", "invalid_state"],
  audit: "billing.portal_opened",
});

export const billingSuccess = operation({
  name: "billing_success",
  extension: "billing",
  method: "GET",
  path: "/v1/orgs/{org_id}/billing/checkouts/{checkout_id}",
  summary: "Show the result of a checkout",
  access: "account",
  params: checkoutPath,
  query: NONE,
  body: null,
  output: fields({
    checkout_id: Type.String(),
    is_paid: Type.Boolean({ description: "false: it is not confirmed yet." }),
    plan: oneOf(PLANS),
    key_prefix: nullable(Type.String({ description: "Of the key that it has created; null: none yet." })),
  }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "checkout_not_found", "billing_off", "billing_failed"],
  audit: "billing.read",
});

export const billingKey = operation({
  name: "billing_key",
  extension: "billing",
  method: "POST",
  path: "/v1/orgs/{org_id}/billing/checkouts/{checkout_id}/key",
  summary: "Create the key that comes with a checkout",
  description: "One per checkout, shown once. Create others on the page of API keys.",
  access: "account",
  wantsProof: true,
  params: checkoutPath,
  query: NONE,
  body: null,
  output: fields({ key_id: Type.String(), name: Type.String(), key: Type.String() }),
  outcomes: { created: 201 },
  errors: [
    "org_not_found",
    "insufficient_scope",
    "checkout_not_found",
    "billing_off",
    "billing_failed",
    "invalid_state",
    "quota_exceeded",
  ],
  secretOutput: true,
  audit: "billing.key_taken",
});
