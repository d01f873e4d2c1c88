/** Billing: plans bought through a payment service, if the operator has configured one; otherwise the operator assigns plans. */
import {
  type BillingRecord,
  billingCheckout,
  billingGet,
  billingKey,
  billingPortal,
  billingSuccess,
} from "../../../shared/api/people/billing.ts";
import type { OrgId, UserId } from "../../../shared/ids.ts";
import { type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import { getKey, getOrg, newKey, type OrgRow } from "../orgs/index.ts";
import type { BillingDeps } from "./deps.ts";
import type { BillingPlan } from "./plan.ts";
import type { Checkout, Provider } from "./provider.ts";
import { CheckoutQuestions } from "./request-limit.ts";
import {
  addCheckout,
  addCustomer,
  addEvent,
  getCheckout,
  getCustomer,
  lastCheckout,
  putCustomer,
  takeKey,
} from "./store.ts";
import { makeStripe } from "./stripe.ts";
import { entitledUntil, Settling } from "./subscriptions.ts";
import type { CheckoutRow, CustomerRow } from "./table.ts";

export { billingPersonal } from "./personal.ts";
export { type BillingPlan, planBilling } from "./plan.ts";

/** Started and unpaid checkouts, per organization. */
const MAX_CHECKOUTS = 20;
const KEY_NAME = "from billing";
const SUCCESS = "/billing/success?session_id={checkout_id}";

export interface Billing {
  operations: Bound[];
  isOn: boolean;
  /** Stores a change notification of the payment service. False: the service did not send it. */
  notice(body: string, signature: string): Promise<boolean>;
  /** Cancels the purchases of an organization that is being deleted. Throws billing_failed. */
  endOrg(orgId: OrgId): Promise<void>;
  /** Processes change notifications until the returned function is called. */
  start(): () => Promise<void>;
}

/** `plan` null: nothing is sold. */
export function makeBilling(deps: BillingDeps, plan: BillingPlan | null): Billing {
  const { database, changes, url } = deps;
  const { queries } = database;
  const provider = plan && makeStripe(plan);
  const settling = provider && new Settling(deps, provider, plan.monthly_credits);
  const questions = new CheckoutQuestions();
  const requireProvider = (): Provider => {
    if (!provider) throw new ServiceError("billing_off");
    return provider;
  };
  const find = ({ caller }: KeyCall, { org_id = "" }: Record<string, string>): OrgId => deps.findOrg(caller, org_id);
  const findOwned = (call: KeyCall, params: Record<string, string>): OrgId => {
    const orgId = find(call, params);
    deps.requireOwner(queries, call.caller);
    requireProvider();
    return orgId;
  };
  const findCheckout = (orgId: OrgId, { checkout_id = "" }: Record<string, string>): CheckoutRow => {
    const row = getCheckout(queries, checkout_id);
    if (row?.org_id !== orgId) throw new ServiceError("checkout_not_found");
    return row;
  };
  /** Settles a paid checkout. */
  const isPaid = ({ org_id, checkout_id }: CheckoutRow): Promise<boolean> =>
    questions.once(checkout_id, async () => {
      const checkout = await requireProvider().getCheckout(checkout_id);
      if (!checkout?.is_paid || checkout.org_id !== org_id || checkout.customer_id === null) return false;
      await settling?.settle(org_id, checkout.customer_id);
      return true;
    });
  /** Created before the first payment, so that all payments of an organization belong to one customer. */
  const customerOf = async (org_id: OrgId): Promise<string> => {
    const row = getCustomer(queries, org_id);
    if (row) return row.customer_id;
    const customer_id = await requireProvider().newCustomer(org_id);
    return (await database.commit((within) => addCustomer(within, unpaid(org_id, customer_id)))).customer_id;
  };
  const requireCanBuy = (org_id: OrgId): void => {
    if (recordOf(org_id).can_buy) return;
    throw new ServiceError("invalid_state", {
      detail: "The organization has a subscription.",
      hint: "Manage cards, invoices and cancellation at the payment service.",
    });
  };
  /** The last checkout if it can still be paid; otherwise a new one. Concurrent calls get the same one. */
  const checkoutFor = async (org_id: OrgId): Promise<Checkout> => {
    const last = lastCheckout(queries, org_id);
    const seen = last ? await requireProvider().getCheckout(last.checkout_id) : null;
    if (seen && seen.url !== null) return seen;
    const customer_id = await customerOf(org_id);
    if (seen) await settling?.settle(org_id, customer_id);
    requireCanBuy(org_id);
    const ask = (customer: string) =>
      requireProvider().checkout({
        org_id,
        customer_id: customer,
        success_url: url() + SUCCESS,
        back_url: `${url()}/billing`,
        once: `${org_id} ${plan?.price} by ${customer} after ${last?.checkout_id ?? "none"}`,
      });
    const made = await ask(customer_id);
    if (made) return made;
    // The payment service has a different account than when the customer was created there. Purchases under the old account are not
    // forgotten.
    if (getCustomer(queries, org_id)?.subscription_id) {
      throw new ServiceError("billing_failed", {
        detail:
          "The payment service does not know the customer of an earlier purchase. Check that it is the same Stripe account.",
      });
    }
    const another = await requireProvider().newCustomer(org_id);
    await database.commit((within) => putCustomer(within, unpaid(org_id, another)));
    const second = await ask(another);
    if (!second)
      throw new ServiceError("billing_failed", { detail: "The payment service does not know the customer." });
    return second;
  };
  const recordOf = (orgId: OrgId): BillingRecord => {
    const row = getCustomer(queries, orgId);
    const org = getOrg(queries, orgId);
    const until = row ? entitledUntil(row) : null;
    const isOver = row === undefined || row.status === "none" || row.status === "ended";
    const ends = row?.status === "active" && row.cancels_at_end ? row.period_end : until;
    return {
      provider: provider ? "stripe" : "none",
      plan: org?.plan ?? "free",
      status: row?.status ?? "none",
      period_end: row?.period_end ?? null,
      cancels_at_end: row?.cancels_at_end ?? false,
      plan_until: row && givesPlan(org) && (row.status !== "active" || row.cancels_at_end) ? ends : null,
      can_buy: provider !== null && isOver,
    };
  };

  return {
    isOn: provider !== null,

    operations: [
      bind(billingGet, { find, run: (_call, _input, orgId) => ({ outcome: "ok", body: recordOf(orgId) }) }),

      bind(billingCheckout, {
        find: findOwned,
        run: async (call, _input, org_id) => {
          requireCanBuy(org_id);
          const { checkout_id, url: leadsTo } = await checkoutFor(org_id);
          if (leadsTo === null) throw new ServiceError("invalid_state", { detail: "This checkout has already ended." });
          const user_id = call.caller.key_id as string as UserId;
          const body = await database.commit((within) => {
            deps.requireOwner(within, call.caller);
            const row = { checkout_id, org_id, user_id, created_at: now(), key_id: null };
            addCheckout(within, row, MAX_CHECKOUTS);
            call.audit.details = { checkout_id };
            call.work.keep("created", { checkout_id, url: leadsTo });
            return { checkout_id, url: leadsTo };
          });
          return { outcome: "created", body };
        },
      }),

      bind(billingPortal, {
        find: findOwned,
        run: async (_call, _input, orgId) => {
          const customer = getCustomer(queries, orgId);
          if (!customer || customer.status === "none")
            throw new ServiceError("invalid_state", { detail: "The organization has bought nothing yet." });
          const leadsTo = await requireProvider().portal(customer.customer_id, `${url()}/billing`);
          return { outcome: "created", body: { url: leadsTo } };
        },
      }),

      bind(billingSuccess, {
        find: (call, params) => {
          const orgId = find(call, params);
          requireProvider();
          return findCheckout(orgId, params);
        },
        run: async (_call, _input, row) => {
          const is_paid = await isPaid(row);
          const { checkout_id, org_id, key_id } = row;
          const key_prefix = key_id === null ? null : (getKey(queries, key_id)?.key_prefix ?? null);
          const { plan } = recordOf(org_id);
          return { outcome: "ok", body: { checkout_id, is_paid, plan, key_prefix } };
        },
      }),

      bind(billingKey, {
        find: (call, params) => findCheckout(findOwned(call, params), params),
        run: async (call, _input, row) => {
          const { checkout_id, org_id } = row;
          if (!(await isPaid(row))) {
            throw new ServiceError("invalid_state", {
              detail: "The payment is not confirmed yet.",
              hint: "Retry in a moment.",
            });
          }
          const maker = { type: "user", id: call.caller.key_id as string };
          const made = newKey({ org_id, kind: "api", name: KEY_NAME, maker });
          const { key_id, name } = made.row;
          const body = await changes.addKey(made.row, (within) => {
            call.audit.details = { checkout_id, key_id };
            if (!takeKey(within, checkout_id, key_id)) {
              const taken = getCheckout(within, checkout_id)?.key_id ?? null;
              throw alreadyTaken(taken === null ? undefined : getKey(within, taken)?.key_prefix);
            }
            const answer = { key_id, name, key: made.key };
            call.work.keep("created", answer);
            return answer;
          });
          return { outcome: "created", body };
        },
      }),
    ],

    notice: async (body, signature) => {
      const event = await requireProvider().readEvent(body, signature);
      if (!event) return false;
      const isNew = await database.commit((within) =>
        addEvent(within, { ...event, received_at: now(), done_at: null }),
      );
      if (isNew) settling?.wake();
      return true;
    },

    endOrg: async (orgId) => {
      const row = getCustomer(queries, orgId);
      if (!row) return;
      if (settling) await settling.endAll(orgId, row.customer_id);
      else if (row.status !== "none" && row.status !== "ended") {
        const { customer_id, subscription_id } = row;
        const note =
          "an organization with a subscription ends: cancel it at the payment service, because billing.provider is none";
        deps.log.warn(note, { org_id: orgId, customer_id, subscription_id });
      }
    },

    start: () => settling?.start() ?? (async () => undefined),
  };
}

const givesPlan = (org: OrgRow | undefined) => org?.plan_by === "billing" && org.plan !== "free";

const unpaid = (org_id: OrgId, customer_id: string): CustomerRow => ({
  org_id,
  customer_id,
  subscription_id: null,
  status: "none",
  period_end: null,
  cancels_at_end: false,
  past_due_since: null,
  asked_at: now(),
  paid_until: null,
});

const alreadyTaken = (prefix: string | undefined) =>
  new ServiceError("invalid_state", {
    detail: `The key of this checkout was already shown${prefix ? `, ${prefix}…` : ""}.`,
    hint: "Create another key on the API keys page.",
  });
