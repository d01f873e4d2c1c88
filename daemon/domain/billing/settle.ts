/**
 * Owns what comes of what the payment service says: it is asked how an organization's subscription is, and that is written, with the plan
 * and the credits that follow from it, in one commit. So it is the same whichever notices came, how often, and in which order.
 *
 *   active            plan starter
 *   past due          starter for 7 days more, then free
 *   ended             starter until its period is over, then free
 *
 * A plan that the operator has given is left alone. Nothing that runs is ended by a plan that is less.
 */
import type { OrgId } from "../../../shared/ids.ts";
import { after, at, now } from "../../core/clock.ts";
import { Deadlines } from "../../core/deadlines.ts";
import { repeat } from "../../core/repeat.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import { getOrg, grantCredits } from "../orgs/index.ts";
import type { BillingDeps } from "./deps.ts";
import type { Provider, Subscription } from "./provider.ts";
import {
  customerById,
  dropEvents,
  endEvent,
  getCheckout,
  getCustomer,
  listCustomers,
  openEvents,
  putCustomer,
} from "./store.ts";
import type { BillingEventRow, CustomerRow } from "./table.ts";

const BOUGHT = "starter";
const FREE = "free";
const PAST_DUE_SECONDS = 7 * 86_400;
/** Notices that were lost are made good for within this. */
const REPAIR_MS = 86_400_000;
/** How soon a notice is seen to again for which the service could not be asked. */
const AGAIN_MS = 30_000;
const EVENTS_AT_ONCE = 100;
/** The service sends a notice again for three days. */
const EVENT_KEPT_MS = 30 * 86_400_000;
const ACTOR = { type: "system", id: "billing", name: "billing" };

export class Settling {
  readonly #deps: BillingDeps;
  readonly #provider: Provider;
  readonly #monthlyCredits: number;
  /** Of each organization the work that the next one waits for. */
  readonly #busy = new Map<string, Promise<unknown>>();
  readonly #deadlines = new Deadlines((orgId) => void this.#lookAt(orgId as OrgId));
  #looking: Promise<void> = Promise.resolve();
  #again: Timer | undefined;
  #stopped = false;

  constructor(deps: BillingDeps, provider: Provider, monthlyCredits: number) {
    this.#deps = deps;
    this.#provider = provider;
    this.#monthlyCredits = monthlyCredits;
  }

  /** Sees to what was kept, and to all subscriptions now and once a day. What is returned ends that. */
  start(): () => Promise<void> {
    this.wake();
    const stop = repeat(REPAIR_MS, async () => {
      const { database } = this.#deps;
      await database.commit((queries) => dropEvents(queries, at(Date.now() - EVENT_KEPT_MS))).catch(() => undefined);
      for (const { org_id } of listCustomers(database.queries)) await this.#lookAt(org_id);
    });
    return async () => {
      this.#stopped = true;
      stop();
      clearTimeout(this.#again);
      this.#deadlines.clear();
      await this.#looking;
      await Promise.allSettled(this.#busy.values());
    };
  }

  /** Something was kept that nobody has seen to. */
  wake(): void {
    this.#looking = this.#looking.then(() => this.#look());
  }

  /** Asks, and writes what is so now. Throws billing_failed. */
  async settle(orgId: OrgId, customerId: string, event: BillingEventRow | null = null): Promise<void> {
    const before = this.#busy.get(orgId) ?? Promise.resolve();
    const work = before.then(
      () => this.#settle(orgId, customerId, event),
      () => this.#settle(orgId, customerId, event),
    );
    this.#busy.set(orgId, work);
    try {
      await work;
    } finally {
      if (this.#busy.get(orgId) === work) this.#busy.delete(orgId);
    }
  }

  /** A checkout of ours that is paid makes its organization a customer. Throws billing_failed. */
  async arrive(checkoutId: string, event: BillingEventRow | null = null): Promise<void> {
    const { queries } = this.#deps.database;
    const kept = getCheckout(queries, checkoutId);
    const checkout = kept ? await this.#provider.getCheckout(checkoutId) : null;
    if (!kept || !checkout || checkout.org_id !== kept.org_id || !checkout.is_paid || checkout.customer_id === null) {
      return await this.#end(event);
    }
    await this.settle(kept.org_id, checkout.customer_id, event);
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { database, log } = this.#deps;
    clearTimeout(this.#again);
    let failed = false;
    for (const event of openEvents(database.queries, EVENTS_AT_ONCE)) {
      if (this.#stopped) return;
      try {
        const customer = event.customer_id === null ? undefined : customerById(database.queries, event.customer_id);
        if (customer) await this.settle(customer.org_id, customer.customer_id, event);
        else if (event.checkout_id !== null) await this.arrive(event.checkout_id, event);
        // Whose it is says the notice of the checkout, which comes too.
        else await this.#end(event);
      } catch (error) {
        failed = true;
        log.warn("billing not seen to, to be tried again", { event_id: event.event_id, error: describeError(error) });
      }
    }
    const left = !failed && openEvents(database.queries, 1).length > 0;
    if (this.#stopped || (!failed && !left)) return;
    this.#again = setTimeout(() => this.wake(), left ? 0 : AGAIN_MS);
    this.#again.unref();
  }

  async #end(event: BillingEventRow | null): Promise<void> {
    if (event) await this.#deps.database.commit((queries) => endEvent(queries, event.event_id, now()));
  }

  /** Never rejects. */
  async #lookAt(orgId: OrgId): Promise<void> {
    const { database, log } = this.#deps;
    try {
      const customer = getCustomer(database.queries, orgId);
      if (customer) await this.settle(orgId, customer.customer_id);
    } catch (error) {
      log.warn("billing not looked at, to be tried again", { org_id: orgId, error: describeError(error) });
      this.#deadlines.set(orgId, after(now(), AGAIN_MS / 1000));
    }
  }

  async #settle(orgId: OrgId, customerId: string, event: BillingEventRow | null): Promise<void> {
    const { database } = this.#deps;
    const subscription = await this.#provider.subscription(customerId);
    const org = getOrg(database.queries, orgId);
    if (!org || org.ending_at !== null) return await this.#end(event);
    const row = rowOf(getCustomer(database.queries, orgId), orgId, customerId, subscription);
    const until = entitledUntil(row);
    const isEntitled = until !== null && until > now();
    const write = (queries: Queries, gave_plan: boolean) => {
      putCustomer(queries, { ...row, gave_plan });
      if (subscription) this.#grant(queries, orgId, subscription);
      if (event) endEvent(queries, event.event_id, now());
    };
    if (isEntitled && org.plan !== BOUGHT) await this.#setPlan(orgId, BOUGHT, (queries) => write(queries, true));
    else if (!isEntitled && row.gave_plan && org.plan === BOUGHT) {
      await this.#setPlan(orgId, FREE, (queries) => write(queries, false));
    } else await database.commit((queries) => write(queries, row.gave_plan && isEntitled));
    this.#deadlines.set(orgId, isEntitled ? lookAgainAt(row, until) : null);
  }

  async #setPlan(orgId: OrgId, plan: typeof BOUGHT | typeof FREE, write: (queries: Queries) => void): Promise<void> {
    await this.#deps.directory.setPlan(orgId, plan, (queries, before) => {
      const details = { plan, before: before.plan };
      appendAudit(queries, {
        event: "billing.plan_set",
        outcome: "success",
        at: now(),
        org_id: orgId,
        actor: ACTOR,
        source: "reconciler",
        details,
      });
      write(queries);
    });
  }

  /** Within a transaction: what each paid period brings, once. */
  #grant(queries: Queries, orgId: OrgId, { subscription_id, paid_periods }: Subscription): void {
    const credits = this.#monthlyCredits;
    if (credits === 0) return;
    const plan = this.#deps.plans[BOUGHT].credits;
    for (const period of [...paid_periods].reverse()) {
      const why = { reason: `plan ${BOUGHT}, from ${period.slice(0, 10)}`, effect: `sub:${subscription_id}:${period}` };
      const { isNew, granted, remaining } = grantCredits(queries, orgId, plan, credits, why);
      if (!isNew) continue;
      const details = { more: credits, granted, remaining, reason: why.reason };
      appendAudit(queries, {
        event: "org.credits_granted",
        outcome: "success",
        at: now(),
        org_id: orgId,
        actor: ACTOR,
        source: "reconciler",
        details,
      });
    }
  }
}

/** What is known of it from now on. */
function rowOf(
  before: CustomerRow | undefined,
  org_id: OrgId,
  customer_id: string,
  subscription: Subscription | null,
): CustomerRow {
  const asked_at = now();
  const isPastDue = subscription?.status === "past_due";
  return {
    org_id,
    customer_id,
    subscription_id: subscription?.subscription_id ?? null,
    status: subscription?.status ?? "none",
    period_end: subscription?.period_end ?? null,
    cancels_at_end: subscription?.cancels_at_end ?? false,
    past_due_since: isPastDue ? (before?.past_due_since ?? asked_at) : null,
    gave_plan: before?.gave_plan ?? false,
    asked_at,
  };
}

/** Until when it gives the plan, as far as is known; null: it gives none. */
export function entitledUntil({ status, period_end, past_due_since }: CustomerRow): string | null {
  if (status === "active") return after(now(), REPAIR_MS / 1000);
  if (status === "past_due") return past_due_since && after(past_due_since, PAST_DUE_SECONDS);
  return status === "ended" ? period_end : null;
}

/** Of what is active the end of its period, when it goes on or ends; a minute later, so that the service has decided. */
function lookAgainAt({ status, period_end }: CustomerRow, until: string): string {
  const moment = status === "active" && period_end !== null ? after(period_end, 60) : until;
  return moment > now() ? moment : after(now(), REPAIR_MS / 1000);
}
