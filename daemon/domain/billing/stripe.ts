/** Owns the conversation with Stripe: each call bounded in time, tried twice more by its library, and told in our own words. */
import Stripe from "stripe";
import { at } from "../../core/clock.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { BillingPlan } from "./plan.ts";
import type { Checkout, Provider, Subscription } from "./provider.ts";

const TIMEOUT_MS = 20_000;
const TRIES_AGAIN = 2;
/** Its events are signed with their moment. */
const SIGNED_WITHIN_SECONDS = 300;
/** Periods of a subscription that are looked at: more than a missed notice could hide. */
const PERIODS = 24;
/** What the answer to an event may say of what it is about. */
const CHECKOUT = "checkout.session";

export function makeStripe({ secret_key, webhook_secret, price, api_url }: BillingPlan): Provider {
  const stripe = new Stripe(secret_key, {
    ...(api_url && placeOf(api_url)),
    httpClient: Stripe.createFetchHttpClient(),
    maxNetworkRetries: TRIES_AGAIN,
    timeout: TIMEOUT_MS,
    telemetry: false,
  });
  const signatures = Stripe.createSubtleCryptoProvider();

  const paidPeriods = async (subscription: string): Promise<string[]> => {
    const { data } = await stripe.invoices.list({ subscription, status: "paid", limit: PERIODS });
    const begun = data.flatMap(({ lines }) => lines.data.map(({ period }) => period.start));
    return [...new Set(begun)].sort((a, b) => b - a).map((seconds) => at(seconds * 1000));
  };

  return {
    checkout: ({ org_id, customer_id, success_url, back_url, once }) =>
      told(async () => {
        const session = await stripe.checkout.sessions.create(
          {
            mode: "subscription",
            line_items: [{ price, quantity: 1 }],
            client_reference_id: org_id,
            success_url: success_url.replace("{checkout_id}", "{CHECKOUT_SESSION_ID}"),
            cancel_url: back_url,
            ...(customer_id === null ? {} : { customer: customer_id }),
          },
          { idempotencyKey: once },
        );
        return toCheckout(session);
      }),

    getCheckout: (checkoutId) =>
      told(async () => {
        try {
          return toCheckout(await stripe.checkout.sessions.retrieve(checkoutId));
        } catch (error) {
          if (error instanceof Stripe.errors.StripeError && error.statusCode === 404) return null;
          throw error;
        }
      }),

    portal: (customer, return_url) =>
      told(async () => (await stripe.billingPortal.sessions.create({ customer, return_url })).url),

    subscription: (customer) =>
      told(async () => {
        const { data } = await stripe.subscriptions.list({ customer, status: "all", limit: 100 });
        const [first] = data.map(toSubscription).sort((a, b) => rank(a) - rank(b));
        return first ? { ...first, paid_periods: await paidPeriods(first.subscription_id) } : null;
      }),

    cancel: (subscriptionId) =>
      told(async () => {
        try {
          await stripe.subscriptions.cancel(subscriptionId);
        } catch (error) {
          // It is gone already.
          if (!(error instanceof Stripe.errors.StripeError && error.statusCode === 404)) throw error;
        }
      }),

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
          checkout_id: about.object === CHECKOUT ? idOf(about.id) : null,
        };
      } catch {
        return null;
      }
    },
  };
}

const placeOf = ({ protocol, hostname, port }: URL) =>
  protocol === "https:"
    ? { host: hostname, port: port || "443", protocol: "https" as const }
    : { host: hostname, port: port || "80", protocol: "http" as const };

/** Throws billing_failed. What the service says may name what is secret, so that its kind is told alone. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const why =
      error instanceof Stripe.errors.StripeError ? `${error.type} ${error.statusCode ?? ""}` : describeError(error);
    throw new ServiceError("billing_failed", {
      detail: `The payment service could not be asked: ${why.trim()}.`,
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
};

function toSubscription(each: Stripe.Subscription): Omit<Subscription, "paid_periods"> {
  // Each item has a period; ours is one item.
  const ends = each.items.data.map(({ current_period_end }) => current_period_end);
  return {
    subscription_id: each.id,
    status: STATUS[each.status] ?? "ended",
    period_end: at(Math.max(0, ...ends) * 1000),
    cancels_at_end: each.cancel_at_period_end,
  };
}

/** Of several the one that gives most; of the others the one that lasts longest. */
function rank({ status, period_end }: Omit<Subscription, "paid_periods">): number {
  const order = { active: 0, past_due: 1, ended: 2, pending: 3 }[status];
  return order * 1e15 - Date.parse(period_end);
}
