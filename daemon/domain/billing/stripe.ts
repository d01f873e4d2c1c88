/** Stripe client: each call has a timeout, is retried twice by Stripe's library, and fails with our own error text. */
import Stripe from "stripe";
import { at } from "../../core/clock.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { BillingPlan } from "./plan.ts";
import type { Checkout, Period, Provider, Subscription } from "./provider.ts";

const TIMEOUT_MS = 20_000;
const TRIES_AGAIN = 2;
/** Maximum age of the signed timestamp of an event. */
const SIGNED_WITHIN_SECONDS = 300;
/** Limit on the subscriptions and paid invoices read per customer: more than missed notifications could hide. */
const MOST = 100;
/** Reasons of invoices for a period, not for a change within one. */
const FOR_A_PERIOD: ReadonlySet<string | null> = new Set(["subscription_create", "subscription_cycle"]);

export function makeStripe({ secret_key, webhook_secret, price, api_url }: BillingPlan): Provider {
  const stopped = new AbortController();
  const ask = (url: string | URL | Request, { signal, ...request }: RequestInit = {}) =>
    fetch(url, { ...request, signal: AbortSignal.any([stopped.signal, ...(signal ? [signal] : [])]) });
  const client = Stripe.createFetchHttpClient(Object.assign(ask, { preconnect: fetch.preconnect }));
  const stripe = new Stripe(secret_key, {
    ...(api_url && placeOf(api_url)),
    httpClient: client,
    maxNetworkRetries: TRIES_AGAIN,
    timeout: TIMEOUT_MS,
    telemetry: false,
  });
  const signatures = Stripe.createSubtleCryptoProvider();

  /** The paid periods of each subscription of a customer, by subscription. */
  const paidPeriods = async (customer: string): Promise<Map<string, Period[]>> => {
    const { data } = await stripe.invoices.list({ customer, status: "paid", limit: MOST });
    const periods = new Map<string, Period[]>();
    for (const invoice of data) {
      const subscription = idOf(invoice.parent?.subscription_details?.subscription);
      const period = FOR_A_PERIOD.has(invoice.billing_reason) ? periodOf(invoice) : null;
      if (subscription && period) periods.set(subscription, [...(periods.get(subscription) ?? []), period]);
    }
    for (const each of periods.values()) each.sort((a, b) => Date.parse(b.from) - Date.parse(a.from));
    return periods;
  };

  return {
    newCustomer: (org_id) =>
      told(async () => {
        const once = { idempotencyKey: `customer of ${org_id}` };
        return (await stripe.customers.create({ metadata: { org_id } }, once)).id;
      }),

    checkout: ({ org_id, customer_id, success_url, back_url, once }) =>
      told(async () => {
        const session = await unlessCustomerGone(() =>
          stripe.checkout.sessions.create(
            {
              mode: "subscription",
              line_items: [{ price, quantity: 1 }],
              client_reference_id: org_id,
              success_url: success_url.replace("{checkout_id}", "{CHECKOUT_SESSION_ID}"),
              cancel_url: back_url,
              customer: customer_id,
            },
            { idempotencyKey: once },
          ),
        );
        return session && toCheckout(session);
      }),

    getCheckout: (checkoutId) =>
      told(() => unless(NOT_THERE, async () => toCheckout(await stripe.checkout.sessions.retrieve(checkoutId)), null)),

    endCheckout: (checkoutId) =>
      told(() =>
        unless([...NOT_THERE, OVER], async () => void (await stripe.checkout.sessions.expire(checkoutId)), undefined),
      ),

    portal: (customer, return_url) =>
      told(async () => (await stripe.billingPortal.sessions.create({ customer, return_url })).url),

    subscriptions: (customer) =>
      told(async () => {
        const list = async () => (await stripe.subscriptions.list({ customer, status: "all", limit: MOST })).data;
        const data = await unless(NOT_THERE, list, []);
        if (data.length === 0) return [];
        const paid = await paidPeriods(customer);
        return data.map((each) => toSubscription(each, paid.get(each.id) ?? [])).sort((a, b) => rank(a) - rank(b));
      }),

    cancel: (subscriptionId) =>
      told(() => unless(NOT_THERE, async () => void (await stripe.subscriptions.cancel(subscriptionId)), undefined)),

    readEvent: async (body, signature) => {
      try {
        const event = await stripe.webhooks.constructEventAsync(
          body,
          signature,
          webhook_secret,
          SIGNED_WITHIN_SECONDS,
          signatures,
        );
        const about = event.data.object as { id?: unknown; object?: unknown; customer?: unknown };
        return {
          event_id: event.id,
          customer_id: idOf(about.customer) ?? (about.object === "customer" ? idOf(about.id) : null),
        };
      } catch {
        return null;
      }
    },

    stop: () => stopped.abort(),
  };
}

async function unlessCustomerGone<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const isGone = error instanceof Stripe.errors.StripeError && error.code === "resource_missing";
    if (!isGone || error.param !== "customer") throw error;
    return null;
  }
}

const NOT_THERE = [404];
const OVER = 400;

/** Returns `instead` if the service responds with one of these statuses. */
async function unless<T>(statuses: readonly number[], work: () => Promise<T>, instead: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error;
    const isMissing = error.code === "resource_missing" && statuses.includes(404);
    if (!isMissing && !statuses.includes(error.statusCode ?? 0)) throw error;
    return instead;
  }
}

const placeOf = ({ protocol, hostname, port }: URL) =>
  protocol === "https:"
    ? { host: hostname, port: port || "443", protocol: "https" as const }
    : { host: hostname, port: port || "80", protocol: "http" as const };

/** Throws billing_failed. An error text of the service may contain secrets, so only its kind is reported. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const why =
      error instanceof Stripe.errors.StripeError ? `${error.type} ${error.statusCode ?? ""}` : describeError(error);
    throw new ServiceError("billing_failed", {
      detail: `The request to the payment service failed: ${why.trim()}.`,
      cause: error,
    });
  }
}

const idOf = (value: unknown): string | null =>
  typeof value === "string"
    ? value
    : value !== null && typeof value === "object" && "id" in value
      ? idOf(value.id)
      : null;

function toCheckout(session: Stripe.Checkout.Session): Checkout {
  return {
    checkout_id: session.id,
    url: session.url,
    org_id: session.client_reference_id,
    is_paid: session.status === "complete" && session.payment_status !== "unpaid",
    customer_id: idOf(session.customer),
  };
}

const STATUS: Record<string, Subscription["status"]> = {
  active: "active",
  trialing: "active",
  past_due: "past_due",
  incomplete: "pending",
  // These subscriptions continue once they are paid or resumed.
  unpaid: "pending",
  paused: "pending",
};

/** Period that a subscription's invoice is for, without lines for changes within an earlier period. */
function periodOf({ lines }: Stripe.Invoice): Period | null {
  const own = lines.data.filter(({ parent }) => parent?.subscription_item_details?.proration === false);
  const [newest] = own.map(({ period }) => period).sort((a, b) => b.start - a.start);
  return newest ? { from: at(newest.start * 1000), to: at(newest.end * 1000) } : null;
}

function toSubscription(each: Stripe.Subscription, paid: readonly Period[]): Subscription {
  // Each item has a period; our subscriptions have one item.
  const ends = each.items.data.map(({ current_period_end }) => current_period_end);
  return {
    subscription_id: each.id,
    status: STATUS[each.status] ?? "ended",
    period_end: at(Math.max(0, ...ends) * 1000),
    cancels_at_end: each.cancel_at_period_end,
    paid,
  };
}

/** Sort key: the subscription that grants most first, or can grant again; among the others the longest. */
function rank({ status, period_end }: Subscription): number {
  const order = { active: 0, past_due: 1, pending: 2, ended: 3 }[status];
  return order * 1e15 - Date.parse(period_end);
}
