/**
 * The clock of a unit test's process, which the test moves: wall clock, monotonic clock and timers together, those of libraries too. Turns of
 * the event loop, sockets and files go on by themselves.
 */
import { vi } from "vitest";

export class MovedClock implements Disposable {
  readonly #zero: number;

  constructor(start = "2026-01-31T12:00:00Z") {
    vi.useFakeTimers({
      now: Date.parse(start),
      toFake: ["Date", "performance", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    });
    this.#zero = performance.now();
  }

  /** Time passes; timers that become due fire. */
  pass(ms: number): void {
    vi.advanceTimersByTime(ms);
  }

  /** The same, with promises that settle in between. */
  async passAsync(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }

  /** Passes until `ms` after the start. */
  to(ms: number): void {
    this.pass(ms - (performance.now() - this.#zero));
  }

  /** Steps the wall clock alone, forward or back, as NTP or an operator does. */
  step(ms: number): void {
    vi.setSystemTime(Date.now() + ms);
  }

  /** Timers and intervals that are set. */
  get timers(): number {
    return vi.getTimerCount();
  }

  [Symbol.dispose](): void {
    vi.useRealTimers();
  }
}
