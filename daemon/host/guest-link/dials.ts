/**
 * Owns the connections of a guest that have not said who they are yet. Any process in a guest can dial the host: such
 * connections are few at a time and seldom, and never touch the one over which the agent is linked.
 */
import type { Log } from "../../core/log.ts";
import type { GuestLink } from "./handshake.ts";
import { Allowance } from "./pace.ts";

/** An agent needs one; the oldest goes when there are more, since an agent says hello at once. */
const MOST_AT_A_TIME = 4;
/** An agent that is refused dials five times a second at most. */
const DIALS = { perSecond: 10, atOnce: 20 } as const;
const TELL_EVERY_MS = 10_000;

export class Dials {
  readonly #log: Log;
  readonly #waiting = new Set<GuestLink>();
  readonly #allowance = new Allowance(DIALS.perSecond, DIALS.atOnce);
  #refused = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether a connection may say who it is. One that may not is closed. */
  admit(link: GuestLink): boolean {
    if (!this.#allowance.take()) {
      this.refuse(link, "the guest dials too often");
      return false;
    }
    this.#waiting.add(link);
    const [oldest] = this.#waiting;
    if (this.#waiting.size > MOST_AT_A_TIME && oldest) {
      this.refuse(oldest, "the guest has too many connections that do not say who they are");
    }
    return true;
  }

  /** Whether an unidentified connection is open. */
  get areWaiting(): boolean {
    for (const link of this.#waiting) if (!link.isClosed) return true;
    return false;
  }

  /** It has said who it is, or has ended. */
  settle(link: GuestLink): void {
    this.#waiting.delete(link);
  }

  /** Closes a connection with the reason, which the log tells once in a while: a guest must not fill it. */
  refuse(link: GuestLink, reason: string): void {
    this.#waiting.delete(link);
    link.close(reason);
    this.#refused++;
    const now = performance.now();
    if (now - this.#toldAt < TELL_EVERY_MS) return;
    this.#log.warn("guest connection refused", { error: reason, times: this.#refused });
    this.#toldAt = now;
    this.#refused = 0;
  }

  closeAll(reason: string): void {
    for (const link of [...this.#waiting]) link.close(reason);
    this.#waiting.clear();
  }
}
