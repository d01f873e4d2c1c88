/**
 * Owns how many calls begin in one turn of the event loop. What is beyond waits for the next, and organizations take turns: who
 * asks more than the loop can do waits behind itself, and others no longer than a turn lasts.
 */
import { FairQueue } from "../core/fair-queue.ts";

/** As many calls as begin in a turn; each is about a tenth of a millisecond of work. */
const MOST_IN_A_TURN = 64;
/** What a call beyond its rate is counted as: it is refused, and need not be soon. */
const REFUSED = 16;

interface Waiting {
  price: number;
  begin(): void;
}

export class Turns {
  readonly #waiting = new FairQueue<Waiting>();
  #left = MOST_IN_A_TURN;
  #isScheduled = false;

  /** Null where the organization's call may begin at once, else what it has to wait for. */
  enter(orgId: string, isWithinRate: boolean): Promise<void> | null {
    const price = isWithinRate ? 1 : REFUSED;
    this.#schedule();
    if (this.#left >= price && this.#waiting.isEmpty) {
      this.#left -= price;
      return null;
    }
    return new Promise((begin) => this.#waiting.add(orgId, { price, begin }));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#left = MOST_IN_A_TURN;
      while (this.#left > 0) {
        const next = this.#waiting.take();
        if (!next) return;
        this.#left -= next.price;
        next.begin();
      }
      this.#schedule();
    });
  }
}
