/**
 * Rate limit of an organization's events per second. Each needs a new TLS connection, which costs this host's single event loop a
 * millisecond or more: without the limit an organization could starve the others.
 */

import type { OrgId } from "../../../shared/ids.ts";
import { sleep } from "../../core/clock.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import { Allowance } from "../../host/guest-link/pace.ts";

export interface PaceLimits {
  perSecond: number;
  atOnce: number;
}

export class Pace {
  readonly #limits: PaceLimits;
  readonly #allowances = new Map<OrgId, Allowance>();

  constructor(limits: PaceLimits) {
    this.#limits = limits;
  }

  /**
   * Resolves when the organization may send its next event, in the order of the calls. Rejects with DeadlineError when the signal aborts.
   */
  async take(orgId: OrgId, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new DeadlineError("the wait was cancelled");
    const allowance = this.#of(orgId);
    allowance.spend(1);
    const debtMs = allowance.debtMs();
    if (debtMs === 0) return;
    try {
      await sleep(debtMs, signal);
    } catch (cause) {
      // It sends nothing.
      allowance.spend(-1);
      throw new DeadlineError("the wait was cancelled", { cause });
    }
  }

  forget(orgId: OrgId): void {
    this.#allowances.delete(orgId);
  }

  #of(orgId: OrgId): Allowance {
    const known = this.#allowances.get(orgId);
    if (known) return known;
    const { perSecond, atOnce } = this.#limits;
    const made = new Allowance(perSecond, atOnce);
    this.#allowances.set(orgId, made);
    return made;
  }
}
