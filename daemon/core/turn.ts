/** Turns of the event loop: asking something once for many of them, and yielding to others. */
import { FairQueue } from "./fair-queue.ts";

/** What `ask` said, at most so long ago: it is asked again after that. */
export function lately<T>(ms: number, ask: () => T): () => T {
  let said: { value: T; atMs: number } | null = null;
  return () => {
    const nowMs = performance.now();
    if (said === null || nowMs - said.atMs >= ms) said = { value: ask(), atMs: nowMs };
    return said.value;
  };
}

/**
 * Work that takes long and waits for nothing, done in pieces: in each turn of the event loop one of them, whoever's it is, so that
 * the many pieces of many are as little in the way as those of one. Owners take turns.
 */
export class LongWork {
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;

  /** Resolves when the owner's next piece may be done. */
  turn(owner: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(owner, resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.isEmpty) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.take()?.();
      this.#schedule();
    });
  }
}
