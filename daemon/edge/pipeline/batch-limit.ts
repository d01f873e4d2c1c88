/**
 * Limits the concurrent work of batch calls. Items that are processed together share a commit, and all callers wait for it; so calls above
 * the limit wait for places, and organizations take turns.
 */
import { FairQueue } from "../../core/concurrency/fair-queue.ts";

/** A few milliseconds of work. A larger call occupies all slots. */
const PLACES = 128;

interface Waiting {
  places: number;
  begin(): void;
}

export class BatchLimit {
  readonly #waiting = new FairQueue<Waiting>();
  /** The next call in turn, until there are enough places. */
  #next: Waiting | undefined;
  #free = PLACES;

  /** Resolves when the call has a place for each of its items. Call the returned function once to release them. */
  enter(orgId: string, things: number): Promise<() => void> {
    const places = Math.min(things, PLACES);
    return new Promise((resolve) => {
      const begin = () =>
        resolve(() => {
          this.#free += places;
          this.#handOut();
        });
      this.#waiting.add(orgId, { places, begin });
      this.#handOut();
    });
  }

  #handOut(): void {
    while (this.#free > 0) {
      this.#next ??= this.#waiting.take();
      if (!this.#next || this.#next.places > this.#free) return;
      const { places, begin } = this.#next;
      this.#next = undefined;
      this.#free -= places;
      begin();
    }
  }
}
