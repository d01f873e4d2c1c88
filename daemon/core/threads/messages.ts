/** Messages between the event loop and a service thread. */
import { agesOfThread, monotonicMs } from "../clock.ts";
import type { OwnerName } from "../loop/index.ts";

/** Parts of a task's output that are sent before the first of them is taken. */
export const WINDOW = 4;

export type ToThread =
  /** First: what the thread opens, and memory that shows its running part. */
  | { is: "open"; opening: unknown; board: SharedArrayBuffer }
  | { is: "run"; id: number; task: string; input: unknown; owner: OwnerName }
  /** A part was taken. */
  | { is: "taken"; id: number }
  /** The output is no longer wanted. */
  | { is: "cancel"; id: number }
  | { is: "close" };

/** A part of a task's output. */
export interface Part {
  value: unknown;
  isLast: boolean;
}

export type FromThread =
  | { is: "ready" }
  | ({ is: "part"; id: number } & Part)
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
