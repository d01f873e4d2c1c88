/** Messages between the event loop and a reader thread. */

import { agesOfThread, monotonicMs } from "../../core/clock.ts";
import type { OwnerName } from "../../core/loop/index.ts";

/** Parts of a read that are sent before the first of them is taken. */
export const WINDOW = 4;

export type ToReader =
  /** First: the database, and memory that shows when the running part started. */
  | { is: "open"; file: string; board: SharedArrayBuffer }
  /** Of a whole answer all parts are sent as one. */
  | { is: "read"; id: number; read: string; input: unknown; owner: OwnerName; isWhole: boolean }
  /** A part was taken. */
  | { is: "taken"; id: number }
  /** The answer is no longer wanted. */
  | { is: "cancel"; id: number }
  | { is: "close" };

export type FromReader =
  | { is: "ready" }
  | { is: "part"; id: number; bytes: Uint8Array; rest: unknown; isLast: boolean }
  | { is: "failed"; id: number; error: string }
  | { is: "closed" };

/** Index of the start of the running part, in the thread's monotonic time; 0: the thread is idle. */
const SINCE = 0;

/** The running part of a thread, in memory shared with the event loop. */
export class PartBoard {
  readonly #times: Float64Array;
  readonly #ageOf = agesOfThread();

  readonly memory: SharedArrayBuffer;

  constructor(memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#times = new Float64Array(memory);
  }

  start(): void {
    this.#times[SINCE] = monotonicMs();
  }

  end(): void {
    this.#times[SINCE] = 0;
  }

  /** Milliseconds since the running part started, as the event loop sees it; 0 if none runs. */
  get ms(): number {
    const since = this.#times[SINCE] ?? 0;
    return since === 0 ? 0 : this.#ageOf(since);
  }
}
