/**
 * Applies the payment service's state to organizations: reads an organization's subscriptions and writes their state, with the resulting
 * plan and credits, in one commit. The result is the same whichever notifications arrived, how often, and in which order.
 *
 *     active            plan starter
 *     past due          starter for 7 days more, then free
 *     ended             starter until the end of the last paid period, then free
 *
 * A plan that the operator has assigned stays when the paid period is over. A downgrade ends nothing that runs. If an organization has
 * ended, or is ending, all its subscriptions are cancelled, also those that are paid in the meantime.
 */
import type { OrgId } from "../../../shared/ids.ts";
import { after, at, now, startTimer, stopTimer, wallMs } from "../../core/clock.ts";
import { Deadlines } from "../../core/concurrency/deadlines.ts";
import { repeat } from "../../core/concurrency/repeat.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import { getOrg, grantCredits, type OrgRow, type PlanChange } from "../orgs/index.ts";
import type { BillingDeps } from "./deps.ts";
import type { Provider, Subscription } from "./provider.ts";
import {
  customerById,
  dropEvents,
  endEvents,
  getCustomer,
  lastCheckout,
  listCustomers,
  openEvents,
  putCustomer,
} from "./store.ts";
import type { CustomerRow } from "./table.ts";

const BOUGHT = "starter";
const FREE = "free";
const PAST_DUE_SECONDS = 7 * 86_400;
/** Maximum delay until a lost notification is compensated for. */
const REPAIR_MS = 86_400_000;
/** Delay before a failed notification is retried. */
const AGAIN_MS = 30_000;
const EVENTS_AT_ONCE = 100;
/** The service resends a notification for three days. */
const EVENT_KEPT_MS = 30 * 86_400_000;
const ACTOR = { type: "system", id: "billing", name: "billing" };

export class Settling {
  readonly #deps: BillingDeps;
  readonly #provider: Provider;
  readonly #monthlyCredits: number;
  /** Work in progress by organization; the next work waits for it. */
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

  /** Processes stored notifications, and checks all subscriptions now and once a day, until the returned function is called. */
  start(): () => Promise<void> {
    this.wake();
    const stop = repeat(REPAIR_MS, async () => {
      const { database } = this.#deps;
      await database.commit((queries) => dropEvents(queries, at(wallMs() - EVENT_KEPT_MS))).catch(() => undefined);
      for (const { org_id } of listCustomers(database.queries)) {
        if (!this.#stopped && !hasLongEnded(getOrg(database.queries, org_id))) await this.#lookAt(org_id);
      }
    });
    return async () => {
      this.#stopped = true;
      stop();
      stopTimer(this.#again);
      this.#provider.stop();
      await this.#looking;
      await Promise.allSettled(this.#busy.values());
      this.#deadlines.clear();
    };
  }

  /** A notification was stored and is not yet processed. */
  wake(): void {
    this.#looking = this.#looking.then(() => this.#look());
  }

  /** Reads the current state from the service and writes it. Throws billing_failed. */
  async settle(orgId: OrgId, customerId: string, eventIds: readonly string[] = []): Promise<void> {
    const before = this.#busy.get(orgId) ?? Promise.resolve();
    const settle = () => this.#settle(orgId, customerId, eventIds);
    const work = before.then(settle, settle);
    this.#busy.set(orgId, work);
    try {
      await work;
    } finally {
      if (this.#busy.get(orgId) === work) this.#busy.delete(orgId);
    }
  }

  /** Ends all payments for the organization. Throws billing_failed. */
  async endAll(orgId: OrgId, customerId: string): Promise<void> {
    const last = lastCheckout(this.#deps.database.queries, orgId);
    if (last) await this.#provider.endCheckout(last.checkout_id);
    for (const { subscription_id, status } of await this.#provider.subscriptions(customerId)) {
      if (status !== "ended") await this.#provider.cancel(subscription_id);
    }
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { database, log } = this.#deps;
    stopTimer(this.#again);
    let failed = false;
    // A burst of notifications about one customer causes one request.
    const events = Map.groupBy(openEvents(database.queries, EVENTS_AT_ONCE), ({ customer_id }) => customer_id);
    for (const [customerId, about] of events) {
      if (this.#stopped) return;
      const eventIds = about.map(({ event_id }) => event_id);
      try {
        const customer = customerId === null ? undefined : customerById(database.queries, customerId);
        if (customer) await this.settle(customer.org_id, customer.customer_id, eventIds);
        // The customer belongs to no organization of this service.
        else await database.commit((queries) => endEvents(queries, eventIds, now()));
      } catch (error) {
        failed = true;
        if (!this.#stopped) {
          log.warn("failed to settle billing events; will retry", { events: eventIds, error: describeError(error) });
        }
      }
    }
    const left = !failed && openEvents(database.queries, 1).length > 0;
    if (this.#stopped || (!failed && !left)) return;
    this.#again = startTimer(() => this.wake(), left ? 0 : AGAIN_MS);
    this.#again.unref();
  }

  /** Never rejects. */
  async #lookAt(orgId: OrgId): Promise<void> {
    const { database, log } = this.#deps;
    try {
      const customer = getCustomer(database.queries, orgId);
      if (customer) await this.settle(orgId, customer.customer_id);
    } catch (error) {
      if (this.#stopped) return;
      log.warn("failed to settle an organization's billing; will retry", {
        org_id: orgId,
        error: describeError(error),
      });
      this.#deadlines.setIn(orgId, AGAIN_MS);
    }
  }

  async #settle(orgId: OrgId, customerId: string, eventIds: readonly string[]): Promise<void> {
    const { database, changes } = this.#deps;
    const org = getOrg(database.queries, orgId);
    if (!org || org.ending_at !== null) {
      await this.endAll(orgId, customerId);
      return await database.commit((queries) => endEvents(queries, eventIds, now()));
    }
    const subscriptions = await this.#provider.subscriptions(customerId);
    const row = rowOf(getCustomer(database.queries, orgId), orgId, customerId, subscriptions);
    const until = entitledUntil(row);
    const isEntitled = until !== null && until > now();
    const decide = ({ plan, plan_by }: OrgRow): PlanChange | null => {
      if (isEntitled) return plan === BOUGHT ? null : { plan: BOUGHT, plan_by: "billing" };
      return plan === BOUGHT && plan_by === "billing" ? { plan: FREE, plan_by: "billing" } : null;
    };
    await changes.setPlan(orgId, decide, (queries, { before, change }) => {
      putCustomer(queries, row);
      if (change) record(queries, orgId, "billing.plan_set", { plan: change.plan, before: before.plan });
      this.#grant(queries, orgId, subscriptions);
      endEvents(queries, eventIds, now());
    });
    if (!this.#stopped) this.#deadlines.set(orgId, isEntitled ? lookAgainAt(row, until) : null);
  }

  /**
   * Within a transaction: grants the credits of each paid period once. A period that starts before another one's end grants no credits: it
   * may have been paid from the refund of that one.
   */
  #grant(queries: Queries, orgId: OrgId, subscriptions: readonly Subscription[]): void {
    const credits = this.#monthlyCredits;
    if (credits === 0) return;
    const plan = this.#deps.plans[BOUGHT].credits;
    const periods = subscriptions.flatMap(({ subscription_id, paid }) =>
      paid.map((each) => ({ ...each, subscription_id })),
    );
    let coveredUntil = "";
    for (const { subscription_id, from, to } of periods.sort((a, b) => (a.from < b.from ? -1 : 1))) {
      if (from < coveredUntil) continue;
      coveredUntil = to;
      const why = { reason: `plan ${BOUGHT}, from ${from.slice(0, 10)}`, effect: `sub:${subscription_id}:${from}` };
      const { isNew, granted, remaining } = grantCredits(queries, orgId, plan, credits, why);
      if (!isNew) continue;
      record(queries, orgId, "org.credits_granted", { more: credits, granted, remaining, reason: why.reason });
    }
  }
}

function record(queries: Queries, org_id: OrgId, event: string, details: Record<string, unknown>): void {
  const entry = { event, outcome: "success", source: "reconciler", details } as const;
  appendAudit(queries, { ...entry, at: now(), org_id, actor: ACTOR });
}

/** Whether it ended so long ago that the service has nothing pending for it. */
function hasLongEnded(org: OrgRow | undefined): boolean {
  return org?.ended_at != null && after(org.ended_at, EVENT_KEPT_MS / 1000) < now();
}

/** The row to store from now on. */
function rowOf(
  before: CustomerRow | undefined,
  org_id: OrgId,
  customer_id: string,
  subscriptions: readonly Subscription[],
): CustomerRow {
  const asked_at = now();
  const [first] = subscriptions;
  const isPastDue = first?.status === "past_due";
  const ends = subscriptions.flatMap(({ paid }) => paid.map(({ to }) => to));
  return {
    org_id,
    customer_id,
    subscription_id: first?.subscription_id ?? null,
    status: first?.status ?? "none",
    period_end: first?.period_end ?? null,
    cancels_at_end: first?.cancels_at_end ?? false,
    past_due_since: isPastDue ? (before?.past_due_since ?? asked_at) : null,
    asked_at,
    paid_until: ends.sort().at(-1) ?? null,
  };
}

/** End of the time in which the subscription provides the plan, as far as is known; null: it does not. */
export function entitledUntil({ status, past_due_since, paid_until }: CustomerRow): string | null {
  if (status === "active") return after(now(), REPAIR_MS / 1000);
  const grace = status === "past_due" && past_due_since ? after(past_due_since, PAST_DUE_SECONDS) : null;
  return (
    [grace, paid_until]
      .filter((moment) => moment !== null)
      .sort()
      .at(-1) ?? null
  );
}

/** For an active subscription, one minute after the end of its period, when it renews or ends, so that the service has decided. */
function lookAgainAt({ status, period_end }: CustomerRow, until: string): string {
  const moment = status === "active" && period_end !== null ? after(period_end, 60) : until;
  return moment > now() ? moment : after(now(), REPAIR_MS / 1000);
}
