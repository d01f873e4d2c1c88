/** Deadlines: one timer each, also for those further away than a timer can reach. */
import { startTimer, stopTimer, wallMs } from "./clock.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Deadlines {
  readonly #timers = new Map<string, Timer>();
  readonly #onDue: (key: string) => void;

  constructor(onDue: (key: string) => void) {
    this.#onDue = onDue;
  }

  /** Sets or moves the moment of `key`; null takes it away. */
  set(key: string, moment: string | null): void {
    stopTimer(this.#timers.get(key));
    this.#timers.delete(key);
    if (moment === null) return;
    const wait = Math.max(0, Date.parse(moment) - wallMs());
    const timer = startTimer(
      () => {
        this.#timers.delete(key);
        if (wait > LONGEST_TIMER_MS) this.set(key, moment);
        else this.#onDue(key);
      },
      Math.min(wait, LONGEST_TIMER_MS),
    );
    timer.unref();
    this.#timers.set(key, timer);
  }

  clear(): void {
    for (const key of [...this.#timers.keys()]) this.set(key, null);
  }
}
