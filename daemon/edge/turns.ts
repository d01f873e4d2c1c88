/**
 * Owns how many calls begin in one turn of the event loop. What is beyond waits for the next, and organizations take turns: who
 * asks more than the loop can do waits behind itself, and others no longer than a turn lasts. A call beyond its rate waits before
 * that: who asks again as soon as it is refused would else keep the loop busy with refusals.
 */
import { FairQueue } from "../core/fair-queue.ts";

/** As many calls as begin in a turn; each is about a tenth of a millisecond of work. More would be felt by who comes meanwhile, fewer cost turns. */
const MOST_IN_A_TURN = 8;
/** What a call beyond its rate is counted as: it is refused, and need not be soon. */
const REFUSED = 2;

const REFUSED_MS = 100;
/** No organization is called so. */
const UNKNOWN = "unknown ";

interface Waiting {
  price: number;
  begin(): void;
}

export class Turns {
  readonly #waiting = new FairQueue<Waiting>();
  #left = MOST_IN_A_TURN;
  #isScheduled = false;
  readonly #refusedMs: number;

  constructor(refusedMs = REFUSED_MS) {
    this.#refusedMs = refusedMs;
  }

  /** Null where the organization's call may begin at once, else what it has to wait for. */
  enter(orgId: string, isWithinRate: boolean): Promise<void> | null {
    if (isWithinRate) return this.#take(orgId, 1);
    return Bun.sleep(this.#refusedMs).then(() => this.#take(orgId, REFUSED) ?? undefined);
  }

  /**
   * The same for what somebody asks who has shown no key and no session: pages together, and programs that want tokens, take turns with the organizations, and each
   * is counted as a whole turn, for a page is about that much work.
   */
  enterUnknown(who: "page" | "program"): Promise<void> | null {
    return this.#take(`${UNKNOWN}${who}`, MOST_IN_A_TURN);
  }

  /** Before a refusal is sent to one of these: who asks again at once has waited. */
  async refused(): Promise<void> {
    await Bun.sleep(this.#refusedMs);
  }

  #take(orgId: string, price: number): Promise<void> | null {
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
