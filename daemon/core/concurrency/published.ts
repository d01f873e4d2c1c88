/** A published value: one writer, any number of readers, each waiting on a predicate with a deadline. */
import { startTimer, stopTimer } from "../clock.ts";

interface Waiter<T> {
  predicate(value: T): boolean;
  settle(outcome: { value: T } | { error: Error }): void;
}

export class DeadlineError extends Error {
  override name = "DeadlineError";
}

export class Published<T> {
  #value: T;
  #generation = 0;
  readonly #waiters = new Set<Waiter<T>>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Number of times the value was set: equal numbers mean no change in between. */
  get generation(): number {
    return this.#generation;
  }

  set(value: T): void {
    this.#value = value;
    this.#generation++;
    for (const waiter of [...this.#waiters]) {
      if (waiter.predicate(value)) waiter.settle({ value });
    }
  }

  /**
   * Resolves to the first value for which `predicate` holds, including the current one. Rejects with DeadlineError; Infinity means no
   * deadline.
   */
  until(predicate: (value: T) => boolean, deadlineMs: number, signal?: AbortSignal): Promise<T> {
    if (predicate(this.#value)) return Promise.resolve(this.#value);
    return new Promise((resolve, reject) => {
      const late = () =>
        waiter.settle({ error: new DeadlineError(`the expected state was not reached within ${deadlineMs} ms`) });
      const timer = deadlineMs === Number.POSITIVE_INFINITY ? undefined : startTimer(late, deadlineMs);
      const aborted = () => waiter.settle({ error: new DeadlineError("the wait was cancelled") });
      const waiter: Waiter<T> = {
        predicate,
        settle: (outcome) => {
          stopTimer(timer);
          signal?.removeEventListener("abort", aborted);
          this.#waiters.delete(waiter);
          if ("value" in outcome) resolve(outcome.value);
          else reject(outcome.error);
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener("abort", aborted, { once: true });
      if (signal?.aborted) aborted();
    });
  }
}

/** Settles like `promise`, or rejects with DeadlineError after `deadlineMs`. The work itself continues. */
export async function within<T>(promise: Promise<T>, deadlineMs: number, label: string): Promise<T> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = startTimer(() => reject(new DeadlineError(`${label} took over ${deadlineMs} ms`)), deadlineMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    stopTimer(timer);
  }
}

/** Settles like `work`, or resolves to `value` after `ms` or when the signal aborts. The work itself continues. */
export async function orAfter<T, Late>(
  work: Promise<T>,
  ms: number,
  value: Late,
  signal?: AbortSignal,
): Promise<T | Late> {
  const late = Promise.withResolvers<Late>();
  const giveUp = () => late.resolve(value);
  const timer = startTimer(giveUp, ms);
  signal?.addEventListener("abort", giveUp, { once: true });
  if (signal?.aborted) giveUp();
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    stopTimer(timer);
    signal?.removeEventListener("abort", giveUp);
  }
}

/** Settles like `work`, or rejects as soon as the signal is given. The work itself continues. */
export async function unlessGivenUp<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const givenUp = Promise.withResolvers<never>();
  const refuse = () => givenUp.reject(new DeadlineError("the wait was cancelled"));
  signal.addEventListener("abort", refuse);
  try {
    if (signal.aborted) refuse();
    return await Promise.race([work, givenUp.promise]);
  } finally {
    signal.removeEventListener("abort", refuse);
  }
}
