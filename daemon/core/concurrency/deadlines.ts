/** Deadlines by key, with one timer each: wall-clock timestamps, which may be stored, and durations, unaffected by clock steps. */
import { monotonicMs, startTimer, stopTimer, wallMs } from "../clock.ts";

/** Maximum delay after the wall clock steps past a deadline. */
const LONGEST_TIMER_MS = 3_600_000;

export class Deadlines {
  readonly #timers = new Map<string, Timer>();
  readonly #onDue: (key: string) => void;

  constructor(onDue: (key: string) => void) {
    this.#onDue = onDue;
  }

  /** Sets or moves the deadline of `key` to a wall-clock time; null removes it. */
  set(key: string, moment: string | null): void {
    if (moment === null) this.#stop(key);
    else this.#start(key, () => Date.parse(moment) - wallMs());
  }

  /** Sets or moves the deadline of `key` to `ms` from now. */
  setIn(key: string, ms: number): void {
    const due = monotonicMs() + ms;
    this.#start(key, () => due - monotonicMs());
  }

  clear(): void {
    for (const key of [...this.#timers.keys()]) this.#stop(key);
  }

  #start(key: string, leftMs: () => number): void {
    this.#stop(key);
    const timer = startTimer(
      () => {
        if (leftMs() > 0) return this.#start(key, leftMs);
        this.#timers.delete(key);
        this.#onDue(key);
      },
      Math.min(Math.max(0, leftMs()), LONGEST_TIMER_MS),
    );
    this.#timers.set(key, timer.unref());
  }

  #stop(key: string): void {
    stopTimer(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
