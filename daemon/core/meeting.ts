/**
 * Owns a point that several parties reach, wait at, and leave together: all go on once it is let go of, or hear why it came to nothing.
 *
 *   arrive, arrive, … ⇒ all ──release──▶ all go on
 *        └──callOff, or one that is given up──▶ whoever waits or still comes is told why
 */
export class Meeting {
  readonly #all = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #missing: number;

  constructor(parties: number) {
    this.#missing = parties;
    if (parties === 0) this.#all.resolve();
    // Whoever waits hears of it.
    this.#all.promise.catch(() => {});
    this.#over.promise.catch(() => {});
  }

  /** Resolves once all have arrived. */
  get all(): Promise<void> {
    return this.#all.promise;
  }

  /** Waits until all go on. Who is given up calls it off for all, with the reason that `why` tells. */
  async arrive(signal: AbortSignal, why: () => unknown = () => signal.reason): Promise<void> {
    const giveUp = () => this.callOff(why());
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (signal.aborted) giveUp();
      if (--this.#missing === 0) this.#all.resolve();
      await this.#over.promise;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  release(): void {
    this.#over.resolve();
  }

  /** The first reason is the one that is told. */
  callOff(reason: unknown): void {
    this.#over.reject(reason);
    this.#all.reject(reason);
  }
}
