/** Owns for how long a guest has stood still, and deadlines in its own time, which does not pass meanwhile. */
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";

export class Standstill {
  #since: number | null = null;
  #pastMs = 0;
  #times = 0;
  #over = Promise.resolve();
  #end = () => {};

  begin(): void {
    if (this.#since !== null) return;
    this.#since = monotonicMs();
    this.#times++;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#over = promise;
    this.#end = resolve;
  }

  end(): void {
    if (this.#since === null) return;
    this.#pastMs += monotonicMs() - this.#since;
    this.#since = null;
    this.#end();
  }

  /** Milliseconds in all, the present time included. */
  get totalMs(): number {
    return this.#pastMs + (this.#since === null ? 0 : monotonicMs() - this.#since);
  }

  /** A clock of the guest's: milliseconds from no particular moment, in which it never stood still. */
  get guestNowMs(): number {
    return monotonicMs() - this.totalMs;
  }

  /** How often it has begun: two equal numbers, and none in between, mean that the guest was free to answer. */
  get times(): number {
    return this.#times;
  }

  /** Resolves when the guest does not stand still, which is at once when it does not. */
  get over(): Promise<void> {
    return this.#over;
  }
}

/** Calls `onDue` once `ms` of the guest's time have passed; what is returned gives it up. */
export function afterGuestMs(standstill: Standstill, ms: number, onDue: () => void): () => void {
  const startedAt = standstill.guestNowMs;
  let timer: Timer | undefined;
  let over = false;
  const wait = async () => {
    await standstill.over;
    if (over) return;
    const leftMs = ms - (standstill.guestNowMs - startedAt);
    if (leftMs <= 0) onDue();
    else timer = startTimer(wait, leftMs);
  };
  timer = startTimer(wait, ms);
  return () => {
    over = true;
    stopTimer(timer);
  };
}
