/**
 * Rendezvous of several parties: all arrive, wait, and continue together after the release, or get the reason why it was called off.
 *
 *   arrive, arrive, … ⇒ all ──release──▶ all continue
 *        └──callOff, or an aborted party──▶ current and later parties get the reason
 */
export class Rendezvous {
  readonly #all = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #missing: number;

  constructor(parties: number) {
    this.#missing = parties;
    if (parties === 0) this.#all.resolve();
    // Waiters handle the rejection; there may be none.
    this.#all.promise.catch(() => {});
    this.#over.promise.catch(() => {});
  }

  /** Resolves once all have arrived. */
  get all(): Promise<void> {
    return this.#all.promise;
  }

  /** Waits until all continue. An aborted party calls it off for all, with the reason that `why` returns. */
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

  /** The first reason counts. */
  callOff(reason: unknown): void {
    this.#over.reject(reason);
    this.#all.reject(reason);
  }
}
