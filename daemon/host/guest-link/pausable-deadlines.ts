/** Total time that a guest was paused, and deadlines in its own time, which excludes pauses. */
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";

export class PausableDeadlines {
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

  /** Milliseconds of all pauses, including one in progress. */
  get totalMs(): number {
    return this.#pastMs + (this.#since === null ? 0 : monotonicMs() - this.#since);
  }

  /** A clock of the guest: milliseconds from an arbitrary point, without its pauses. */
  get guestNowMs(): number {
    return monotonicMs() - this.totalMs;
  }

  /** Number of pauses: if it is equal at two moments, and no pause was in progress between, the guest was free to answer. */
  get times(): number {
    return this.#times;
  }

  /** Resolves when the guest is not paused, which is immediately if it is not. */
  get over(): Promise<void> {
    return this.#over;
  }
}

/** Calls `onDue` once `ms` of the guest's time have passed; the returned function cancels it. */
export function afterGuestMs(standstill: PausableDeadlines, ms: number, onDue: () => void): () => void {
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
