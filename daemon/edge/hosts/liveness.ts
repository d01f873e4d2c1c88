/**
 * Liveness of a host for requests without a response. A host that lost its power is silent on existing connections, and the kernel would
 * retry for minutes; so after a second without a byte from it a probe checks whether it accepts another connection:
 *
 *     silent ──a byte arrived on any connection, or a probe was answered──▶ trusted, until it answers
 *        └── two probes were not answered ──▶ all requests that wait in silence fail: it does not answer
 */
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";

/** Silence before a probe. */
const SILENCE_MS = 1000;
const LOOKS = 2;

export interface HostSigns {
  /** Monotonic time of the last message from the host. */
  heardAt(): number;
  /** Looks whether anything answers there. */
  isThere(): Promise<boolean>;
}

export class Liveness {
  readonly #signs: HostSigns;
  /** By when they began. */
  readonly #silent = new Map<() => void, number>();
  #timer: Timer | null = null;
  #isLooking = false;

  constructor(signs: HostSigns) {
    this.#signs = signs;
  }

  /** `releaseEmail` is called if the host is gone. Call the returned function when it has answered. */
  add(giveUp: () => void): () => void {
    this.#silent.set(giveUp, monotonicMs());
    this.#timer ??= startTimer(() => this.#due(), SILENCE_MS).unref();
    return () => void this.#silent.delete(giveUp);
  }

  stop(): void {
    stopTimer(this.#timer);
    this.#timer = null;
    this.#silent.clear();
  }

  #due(): void {
    this.#timer = null;
    const before = monotonicMs() - SILENCE_MS;
    const heardAt = this.#signs.heardAt();
    for (const [giveUp, since] of this.#silent) if (since < heardAt) this.#silent.delete(giveUp);
    const due = [...this.#silent].filter(([, since]) => since <= before).map(([giveUp]) => giveUp);
    if (due.length > 0 && !this.#isLooking) void this.#look(due);
    if (this.#silent.size > due.length) this.#again();
  }

  async #look(due: readonly (() => void)[]): Promise<void> {
    this.#isLooking = true;
    try {
      const isThere = await this.#isThere();
      for (const giveUp of due) if (this.#silent.delete(giveUp) && !isThere) giveUp();
    } finally {
      this.#isLooking = false;
    }
    if (this.#silent.size > 0) this.#again();
  }

  async #isThere(): Promise<boolean> {
    for (let left = LOOKS; left > 0; left--) {
      const startedAt = monotonicMs();
      if ((await this.#signs.isThere()) || this.#signs.heardAt() > startedAt) return true;
    }
    return false;
  }

  #again(): void {
    const [first = monotonicMs()] = this.#silent.values();
    this.#timer ??= startTimer(() => this.#due(), Math.max(1, first + SILENCE_MS - monotonicMs())).unref();
  }
}
