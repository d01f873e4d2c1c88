/** Hands bytes from a producer to a consumer; each waits for the other, and no bytes queue up. */

interface Offered {
  bytes: Uint8Array;
  taken: PromiseWithResolvers<void>;
}

export class Handoff implements AsyncIterable<Uint8Array> {
  #waiting: Offered | null = null;
  #changed = Promise.withResolvers<void>();
  #ended = false;
  #failed = false;
  #refused = false;

  /** Resolves when the bytes were consumed, or the consumer has stopped. Calls must not overlap. */
  async put(bytes: Uint8Array): Promise<void> {
    if (this.#refused) return;
    const taken = Promise.withResolvers<void>();
    this.#waiting = { bytes, taken };
    this.#changed.resolve();
    await taken.promise;
  }

  /** No more will come. */
  end(): void {
    this.#ended = true;
    this.#changed.resolve();
  }

  /** The output ends prematurely: the consumer gets an error. */
  fail(): void {
    this.#failed = true;
    this.#changed.resolve();
  }

  /** For one consumer, which may stop at any time: the rest is then dropped. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    let current: Offered | null = null;
    return {
      next: async () => {
        current?.taken.resolve();
        for (;;) {
          const { promise } = this.#changed;
          if (this.#failed) throw new Error("the output ended too early");
          current = this.#waiting;
          this.#waiting = null;
          if (current) return { done: false, value: current.bytes };
          if (this.#ended) return { done: true, value: undefined };
          await promise;
          this.#changed = Promise.withResolvers<void>();
        }
      },
      return: async () => {
        this.#refused = true;
        current?.taken.resolve();
        this.#waiting?.taken.resolve();
        return { done: true, value: undefined };
      },
    };
  }
}
