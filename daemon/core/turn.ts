/** Turns of the event loop: doing something once in a turn, and yielding to others. */
import { FairQueue } from "./fair-queue.ts";

/** Resolves when everybody else had a turn. */
export const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** What `ask` said in this turn; asked again in a later one. */
export function onceATurn<T>(ask: () => T): () => T {
  let said: { value: T } | null = null;
  return () => {
    if (said === null) {
      said = { value: ask() };
      setImmediate(() => {
        said = null;
      });
    }
    return said.value;
  };
}

/** Counts calls by turns of the event loop: each call returns its number within the turn, from 1 on. */
export function countInTurn(): () => number {
  let count = 0;
  const reset = () => {
    count = 0;
  };
  return () => {
    if (count === 0) setImmediate(reset);
    return ++count;
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

/** What all flows together move in a turn of the event loop: more of a gigabyte would be felt by who comes meanwhile. */
const BYTES_IN_A_TURN = 64 * 1024;
const flows = new LongWork();
let made = 0;

/** The turns of one flow of bytes, which has others come in between however fast it goes. */
export class FlowTurns {
  readonly #owner = `flow ${++made}`;
  #moved = 0;

  moved(bytes: number): void {
    this.#moved += bytes;
  }

  /** Before more is moved: what is to be waited for first, or null. */
  next(): Promise<void> | null {
    if (this.#moved < BYTES_IN_A_TURN) return null;
    this.#moved = 0;
    return flows.turn(this.#owner);
  }
}
