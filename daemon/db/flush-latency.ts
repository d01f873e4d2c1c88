/**
 * Decision whether the event loop may wait for the disk: as long as no flush was slow, and after a slow one, once the disk has been quick
 * again for a period. The period doubles each time that it was too short.
 */
import { monotonicMs } from "../core/clock.ts";

/** Time of the event loop that a flush may take, and its maximum wait. */
export const QUICK_MS = 2;
/** Number of consecutive flushes that must have been quick. */
const ROW = 8;
const FIRST_WHILE_MS = 1000;
const LONGEST_WHILE_MS = 60_000;

export class FlushLatency {
  #row = 0;
  #slowAtMs = monotonicMs();
  #whileMs = FIRST_WHILE_MS;
  #isTrusted = false;

  isQuick(): boolean {
    this.#isTrusted ||= this.#row >= ROW && monotonicMs() - this.#slowAtMs >= this.#whileMs;
    return this.#isTrusted;
  }

  /** Reports the duration of a flush. */
  took(ms: number): void {
    if (ms <= QUICK_MS) {
      this.#row++;
      return;
    }
    if (this.#isTrusted) this.#whileMs = Math.min(2 * this.#whileMs, LONGEST_WHILE_MS);
    this.#isTrusted = false;
    this.#row = 0;
    this.#slowAtMs = monotonicMs();
  }
}
