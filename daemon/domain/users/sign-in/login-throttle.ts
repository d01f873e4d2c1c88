/**
 * Throttles password attempts: the delay before the next attempt grows with each failure, and decays with time. No user is locked out: a
 * known browser of the user, and an open session, have separate counts, which no stranger can raise.
 */

import { doubled } from "../../../../shared/backoff.ts";
import { monotonicMs } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";

const DELAY_MS = { first: 1000, most: 60_000 } as const;
const FORGOTTEN_MS = 3600_000;
/** Above this, one count is evicted for each new one. */
const MAX_COUNTED = 20_000;

/** One count: the name that is counted, and the number of attempts without delay. */
export interface Count {
  name: string;
  free: number;
}

interface Tried {
  count: number;
  at: number;
  until: number;
}

export class LoginThrottle {
  /** The most recent attempt is last. */
  readonly #tried = new Map<string, Tried>();

  /** Counts an attempt before its outcome is known, so that concurrent attempts all count. Throws rate_limited. */
  begin(counts: readonly Count[]): void {
    const nowMs = monotonicMs();
    const waitMs = Math.max(...counts.map(({ name }) => (this.#of(name, nowMs)?.until ?? 0) - nowMs));
    if (waitMs > 0) {
      throw new ServiceError("rate_limited", {
        detail: "Too many failed attempts.",
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    }
    for (const { name, free } of counts) {
      const count = (this.#of(name, nowMs)?.count ?? 0) + 1;
      const delayMs = count <= free ? 0 : doubled(DELAY_MS, count - free - 1);
      this.#tried.delete(name);
      this.#tried.set(name, { count, at: nowMs, until: nowMs + delayMs });
    }
    while (this.#tried.size > MAX_COUNTED) this.#forgetOne(nowMs);
  }

  /** Evicts the oldest count without a running delay, so that made-up names displace no running delay. */
  #forgetOne(nowMs: number): void {
    for (const [name, { until }] of this.#tried) {
      if (until <= nowMs) return void this.#tried.delete(name);
    }
    for (const oldest of this.#tried.keys()) return void this.#tried.delete(oldest);
  }

  /** It was the right one. */
  succeeded(counts: readonly Count[]): void {
    for (const { name } of counts) this.#tried.delete(name);
  }

  #of(name: string, nowMs: number): Tried | undefined {
    const tried = this.#tried.get(name);
    return tried && nowMs - tried.at < FORGOTTEN_MS ? tried : undefined;
  }
}
