/**
 * Credits of an organization: granted by its plan and by the operator, less its consumption by the price table (charged in meter.ts). An
 * organization without a grant has no limit.
 *
 *     some left ──used up──▶ none left: no new sandboxes, none resumed ──grace over──▶ running sandboxes end
 *         ▲                      │
 *         └──more are granted────┘
 *
 * The moment of exhaustion follows from current consumption, so that one timer per organization is enough; it is reset whenever consumption
 * changes. The time of exhaustion is stored, so that a restart prolongs no grace.
 */
import type { OrgId } from "../../../../shared/ids.ts";
import { usedOnAll } from "../../../cluster/placements.ts";
import { after, at, now, startTimer, stopTimer, wallMs } from "../../../core/clock.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { locally } from "../../../db/dry-run.ts";
import type { Database } from "../../../db/transact.ts";
import { appendAudit } from "../../audit/index.ts";
import { getCredits, orgsToWatch, putExhausted, putGranted } from "./credits-store.ts";
import { enter } from "./ledger.ts";
import type { Meter } from "./meter.ts";
import { MICRO } from "./prices.ts";
import type { CreditRow } from "./table.ts";

/** Remaining share at which warnings start. */
const WARNING_SHARE = 0.1;
const HOUR_MS = 3_600_000;
/** Least and greatest delay until a forecast is checked again. */
const SOONEST_MS = 1000;
const LATEST_MS = 24 * HOUR_MS;

export interface CreditDeps {
  database: Database;
  log: Log;
  meter: Meter;
  graceSeconds: number;
  /** Consumption on other hosts, in millionths of a credit. */
  usedElsewhere(queries: Queries, orgId: OrgId): number;
  /** Credits of the organization's plan; null: no limit. */
  planCredits(orgId: OrgId): number | null;
}

export interface Balance {
  /** Null: no limit. */
  granted: number | null;
  used: number;
  remaining: number | null;
}

interface Account {
  row: CreditRow;
  running: ReturnType<Meter["running"]>;
  balance: Balance;
}

/** Exhaustion, and the time of the next check. */
interface Outlook {
  /** Time of exhaustion. */
  exhausted_at: string | null;
  /** Time of the next check; null: at the next change. */
  next_at: string | null;
}

export class Credits {
  readonly #deps: CreditDeps;
  /** Organizations with sandboxes that are being ended. */
  readonly #ending = new Set<OrgId>();
  readonly #listeners: ((orgId: OrgId) => Promise<void>)[] = [];
  #looking: Timer | null = null;
  readonly #timers = new Deadlines((orgId) => void this.#look(orgId as OrgId));

  constructor(deps: CreditDeps) {
    this.#deps = deps;
    deps.meter.onChange((orgId) => void this.#look(orgId));
  }

  /**
   * Calls `listener` when an organization's credits are exhausted and the grace period is over: it ends the organization's sandboxes that
   * are not in standby, and never rejects.
   */
  onExhausted(listener: (orgId: OrgId) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** The balance and its warnings. */
  standing(queries: Queries, orgId: OrgId): Balance & { warnings: string[] } {
    const account = this.#accountOf(queries, orgId);
    return { ...account.balance, warnings: this.#warningsOf(account) };
  }

  /** Warnings for a caller that adds or resumes a sandbox. Throws quota_exceeded if no credits remain. */
  admit(queries: Queries, orgId: OrgId): string[] {
    const account = this.#accountOf(queries, orgId);
    const { granted, used, remaining } = account.balance;
    if (remaining === 0) {
      throw new ServiceError("quota_exceeded", {
        detail: `The organization's credits are used up: ${granted} were granted.`,
        details: { limit: "credits", used, cap: granted },
        hint: "Have the operator grant more with `roomd org credits --grant`.",
      });
    }
    return this.#warningsOf(account);
  }

  /** Resumes the timers of the previous daemon. */
  start(orgIds: readonly OrgId[]): void {
    for (const orgId of orgIds) void this.#look(orgId);
  }

  /** Grants or consumption may have changed on another host: checks once for all changes within SOONEST_MS. */
  lookSoon(): void {
    this.#looking ??= startTimer(() => {
      this.#looking = null;
      this.start(orgsToWatch(this.#deps.database.queries));
    }, SOONEST_MS);
  }

  stop(): void {
    stopTimer(this.#looking);
    this.#timers.clear();
  }

  /** Never rejects. */
  async #look(orgId: OrgId): Promise<void> {
    const { database, log, graceSeconds } = this.#deps;
    try {
      const { granted } = getCredits(database.queries, orgId);
      if (grantedOf(this.#deps.planCredits(orgId), granted) === null) return this.#timers.set(orgId, null);
      const { exhausted_at, next_at } = await database.commit((queries) => this.#settle(queries, orgId));
      const isOver = exhausted_at !== null && after(exhausted_at, graceSeconds) <= now();
      this.#timers.set(orgId, isOver ? null : next_at);
      if (isOver && next_at !== null) await this.#end(orgId);
    } catch (error) {
      log.error("failed to check credits", { org_id: orgId, error: describeError(error) });
    }
  }

  async #end(orgId: OrgId): Promise<void> {
    if (this.#ending.has(orgId)) return;
    this.#ending.add(orgId);
    try {
      for (const listener of this.#listeners) await listener(orgId);
    } finally {
      this.#ending.delete(orgId);
    }
  }

  /** Written and current consumption, and the resulting balance. */
  #accountOf(queries: Queries, orgId: OrgId): Account {
    const row = getCredits(queries, orgId);
    const running = this.#deps.meter.running(queries, orgId);
    const granted = grantedOf(this.#deps.planCredits(orgId), row.granted);
    const elsewhere = this.#deps.usedElsewhere(queries, orgId);
    return { row, running, balance: balanceOf(granted, row.used_micro + running.micro + elsewhere) };
  }

  #warningsOf({ row: { exhausted_at }, balance: { granted, remaining } }: Account): string[] {
    if (granted === null || remaining === null || remaining > granted * WARNING_SHARE) return [];
    if (remaining > 0) return [`The organization has ${remaining.toFixed(3)} of its ${granted} credits left.`];
    const ends = exhausted_at === null ? "soon" : `at ${after(exhausted_at, this.#deps.graceSeconds)}`;
    return [
      `The organization's credits are used up: no sandbox is created or resumed, and running sandboxes end ${ends}.`,
    ];
  }

  /** Within a transaction: stores, and records, whether any credits remain. */
  #settle(queries: Queries, orgId: OrgId): Outlook {
    const { row, running, balance } = this.#accountOf(queries, orgId);
    const { granted, used, remaining } = balance;
    const { sandboxes, micro_per_hour } = running;
    if (remaining === null || remaining > 0) {
      if (row.exhausted_at !== null) putExhausted(queries, orgId, null);
      if (remaining === null || micro_per_hour === 0) return { exhausted_at: null, next_at: null };
      const leftMs = (remaining * MICRO * HOUR_MS) / micro_per_hour;
      return {
        exhausted_at: null,
        next_at: at(wallMs() + Math.min(LATEST_MS, Math.max(SOONEST_MS, Math.ceil(leftMs)))),
      };
    }
    const exhausted_at = row.exhausted_at ?? now();
    const ends_at = after(exhausted_at, this.#deps.graceSeconds);
    if (row.exhausted_at === null) {
      putExhausted(queries, orgId, exhausted_at);
      appendAudit(queries, {
        event: "quota.credits_exhausted",
        outcome: "denied",
        at: exhausted_at,
        org_id: orgId,
        actor: { type: "system", id: "credits", name: "credits" },
        source: "reconciler",
        details: { granted, used, sandboxes, ends_at },
      });
    }
    return { exhausted_at, next_at: sandboxes > 0 ? ends_at : null };
  }
}

function balanceOf(granted: number | null, usedMicro: number): Balance {
  const used = usedMicro / MICRO;
  return { granted, used, remaining: granted === null ? null : Math.max(0, granted * MICRO - usedMicro) / MICRO };
}

function grantedOf(plan: number | null, more: number | null): number | null {
  return plan === null && more === null ? null : (plan ?? 0) + (more ?? 0);
}

/** Reason for granting or withdrawing credits, and the name of the effect: each name takes effect once. */
export interface Why {
  reason: string;
  effect: string;
}

/**
 * Within a transaction: grants credits in addition to the plan's, or withdraws all of those (null). `isNew` false: this effect was applied
 * before.
 */
export function grantCredits(
  queries: Queries,
  org_id: OrgId,
  plan: number | null,
  more: number | null,
  { reason, effect }: Why = { reason: "by the operator", effect: crypto.randomUUID() },
): Balance & { isNew: boolean } {
  const row = getCredits(queries, org_id);
  // Consumption on other hosts is as they last reported; a standalone host has no such reports.
  const used_micro = Math.max(row.used_micro, usedOnAll(queries, org_id));
  const kind = more === null ? "withdrawal" : "grant";
  const amount_micro = (more ?? -(row.granted ?? 0)) * MICRO;
  const isNew = enter(queries, { org_id, kind, amount_micro, reason, effect });
  if (!isNew) return { ...balanceOf(grantedOf(plan, row.granted), used_micro), isNew };
  // An organization that had no limit gets the full amount from now on: its past consumption is not deducted.
  const first = row.granted === null && plan === null ? Math.ceil(used_micro / MICRO) : 0;
  if (more !== null && first > 0) {
    const fields = { reason: "used while there was no limit", effect: `${effect}:before` };
    enter(queries, { org_id, kind: "grant", amount_micro: first * MICRO, ...fields });
  }
  const granted = more === null ? null : (row.granted ?? first) + more;
  putGranted(queries, org_id, granted);
  locally(queries, () => putExhausted(queries, org_id, null));
  return { ...balanceOf(grantedOf(plan, granted), used_micro), isNew };
}
