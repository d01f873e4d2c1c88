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

/** Time that admitted work may use in one turn of the event loop: about 30 refused requests, and too short to be noticed by other clients. */
const ADMITTED_MS = 2;

/**
 * Admission of synchronous work to turns of the event loop, by time: a turn admits work for 2 ms, then the rest waits for the next
 * turn. Owners take turns in the queue; the work of one owner keeps its order.
 */
export class TurnBudget {
  readonly #waiting = new FairQueue<() => void>();
  #isScheduled = false;
  #startedAt = 0;

  /** Null if the owner's work may start now, else a promise that resolves when it may. */
  enter(owner: string): Promise<void> | null {
    this.#schedule();
    if (this.#waiting.isEmpty && this.#hasTime()) return null;
    return new Promise((resolve) => this.#waiting.add(owner, resolve));
  }

  #hasTime(): boolean {
    return performance.now() - this.#startedAt < ADMITTED_MS;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#startedAt = performance.now();
    setImmediate(() => void this.#admit());
  }

  async #admit(): Promise<void> {
    this.#startedAt = performance.now();
    do {
      this.#waiting.take()?.();
      // The synchronous part of the admitted work runs in the microtask before this one continues.
      await null;
    } while (!this.#waiting.isEmpty && this.#hasTime());
    this.#isScheduled = false;
    if (!this.#waiting.isEmpty) this.#schedule();
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
