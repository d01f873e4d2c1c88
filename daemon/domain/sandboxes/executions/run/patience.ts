/** Retry policy for an unresponsive guest: backoff between attempts, and total limits. */

import { backoffMs } from "../../../../../shared/backoff.ts";
import { monotonicMs, pause } from "../../../../core/clock.ts";
import type { Following } from "../../../../host/guest-link/exec.ts";
import { afterGuestMs } from "../../../../host/guest-link/pausable-deadlines.ts";

/** Each reply has a timeout of 15 s. */
const MAX_TRIES = 8;
const RETRY_MS = { first: 50, most: 5_000 } as const;
/** Limit of the time without a connection that counts: for the rest the guest may have been paused. */
const LONGEST_GAP_MS = 20_000;
/** TERM and KILL of a command that timed out, and the rest of its output through a slow guest. */
const AFTER_TIMEOUT_MS = 6_000 + 120_000;

/** Counter of consecutive attempts without progress. */
export class Tries {
  #count = 0;
  readonly #most: number;

  constructor(most = MAX_TRIES) {
    this.#most = most;
  }

  /** Whether another attempt is allowed, after an exponential backoff. `over` aborts the pause and returns false. */
  async again(over?: AbortSignal): Promise<boolean> {
    this.#count++;
    if (this.#count >= this.#most || over?.aborted) return false;
    await pause(backoffMs(RETRY_MS, this.#count - 1), over);
    return !over?.aborted;
  }

  /** Something was gained. */
  succeeded(): void {
    this.#count = 0;
  }
}

/** Deadline on the guest's clock after which a command cannot run any more, whatever its guest reports. Infinity: no limit. */
export class Backstop {
  #leftMs: number;
  #lostAt: number | null = null;
  #passed = false;

  constructor(timeoutMs: number) {
    this.#leftMs = timeoutMs + AFTER_TIMEOUT_MS;
  }

  get passed(): boolean {
    return this.#passed;
  }

  /**
   * Counts the time of this connection, and the time since the previous one; closes the followed stream when the limit has passed. Returns
   * a function that stops watching.
   */
  watch({ standstill, close }: Following): () => void {
    if (this.#leftMs === Number.POSITIVE_INFINITY) return () => {};
    if (this.#lostAt !== null) this.#spend(Math.min(monotonicMs() - this.#lostAt, LONGEST_GAP_MS));
    const since = standstill.guestNowMs;
    const giveUp = afterGuestMs(standstill, this.#leftMs, () => {
      this.#passed = true;
      close();
    });
    return () => {
      giveUp();
      this.#spend(standstill.guestNowMs - since);
      this.#lostAt = monotonicMs();
    };
  }

  #spend(ms: number): void {
    this.#leftMs = Math.max(0, this.#leftMs - ms);
  }
}
