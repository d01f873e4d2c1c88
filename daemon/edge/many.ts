/**
 * Owns how much is done at once of calls that are several things each. What is done at once shares a commit, and everybody waits for
 * that; so calls beyond wait for places, and organizations take turns.
 */
import { FairQueue } from "../core/fair-queue.ts";

/** Some milliseconds of work. A call of more than that has all places to itself. */
const PLACES = 128;

interface Waiting {
  places: number;
  begin(): void;
}

export class Many {
  readonly #waiting = new FairQueue<Waiting>();
  /** Whose turn it is, until there are places enough. */
  #next: Waiting | undefined;
  #free = PLACES;

  /** Resolves once the call has a place for each of its things, with what gives them back; that is to be called once. */
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
