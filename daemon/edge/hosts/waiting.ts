/**
 * Owns those who have asked a host and heard nothing yet. A host that lost its power says nothing on the connections that there
 * are, and the system would try for minutes; so after a second without a byte from it one looks whether it takes another:
 *
 *   silent ──something came from it by any connection, or it answered one who looked──▶ trusted, until it answers
 *      └── it was silent to them too, twice ──▶ all who wait in silence are told that it does not answer
 */
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";

/** Of silence, before anybody looks. */
const SILENCE_MS = 1000;
const LOOKS = 2;

export interface HostSigns {
  /** When something came from the host last, in monotonic time. */
  heardAt(): number;
  /** Looks whether anything answers there. */
  isThere(): Promise<boolean>;
}

export class Waiting {
  readonly #signs: HostSigns;
  /** By when they began. */
  readonly #silent = new Map<() => void, number>();
  #timer: Timer | null = null;
  #isLooking = false;

  constructor(signs: HostSigns) {
    this.#signs = signs;
  }

  /** `giveUp` is called when the host is gone. Returns what is to be called when it has answered. */
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
