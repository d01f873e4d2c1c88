/** Messages between the event loop and a service thread. */

import { readFile } from "node:fs/promises";
import { agesOfThread, monotonicMs } from "../clock.ts";
import type { OwnerName } from "../loop/index.ts";
import { describeError, ServiceError } from "../service-error.ts";

/** Maximum number of a task's output parts in flight. */
export const WINDOW = 4;

export type ToThread =
  /** First message: the input of the thread's `open`, and memory that shows its running part. */
  | { is: "open"; opening: unknown; board: SharedArrayBuffer }
  | { is: "run"; id: number; task: string; input: unknown; owner: OwnerName }
  /** A part was taken. */
  | { is: "taken"; id: number }
  /** The output is no longer wanted. */
  | { is: "cancel"; id: number }
  | { is: "close" };

/** A part of a task's output. */
export interface TaskPart {
  value: unknown;
  isLast: boolean;
}

/** An error of a task; `problem` has the fields of a ServiceError. */
export interface Failure {
  message: string;
  problem: Pick<ServiceError, "code" | "options"> | null;
}

export function failureOf(error: unknown): Failure {
  const message = describeError(error);
  if (!(error instanceof ServiceError)) return { message, problem: null };
  const { cause: _, ...options } = error.options;
  return { message, problem: { code: error.code, options } };
}

export const errorOf = ({ message, problem }: Failure): Error =>
  problem ? new ServiceError(problem.code, problem.options) : new Error(message);

export type FromThread =
  | { is: "ready" }
  | ({ is: "part"; id: number } & TaskPart)
  | { is: "failed"; id: number; failure: Failure }
  | { is: "closed" };

/**
 * Indexes of the running part: its start in the thread's monotonic time, 0 if the thread is idle; its task; the thread's
 * processor time at its start, in milliseconds; the thread's id in the kernel.
 */
const SINCE = 0;
const TASK = 1;
const CPU = 2;
const THREAD = 3;
const SLOTS = 4;

/** The running part of a thread, in memory shared with the event loop. */
export class PartBoard {
  readonly #slots: Float64Array;
  readonly #ageOf = agesOfThread();

  readonly memory: SharedArrayBuffer;

  constructor(memory = new SharedArrayBuffer(SLOTS * Float64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#slots = new Float64Array(memory);
  }

  /** Called by the thread, before its first part. */
  enter(threadId: number): void {
    this.#slots[THREAD] = threadId;
  }

  start(id: number, cpuMs: number): void {
    this.#slots[TASK] = id;
    this.#slots[CPU] = cpuMs;
    this.#slots[SINCE] = monotonicMs();
  }

  end(): void {
    this.#slots[SINCE] = 0;
  }

  /** Milliseconds since the running part started, by the event loop's clock; 0 if none runs. */
  get ms(): number {
    const since = this.#slots[SINCE] ?? 0;
    return since === 0 ? 0 : this.#ageOf(since);
  }

  /** Processor time of the running part, measured by the kernel. */
  async cpuMs(): Promise<number> {
    const used = await cpuMsOf(this.#slots[THREAD] ?? 0);
    return this.ms === 0 ? 0 : used - (this.#slots[CPU] ?? 0);
  }

  /** Task of the running part; remains set if the thread has ended during that part. */
  get task(): number | null {
    return this.#slots[SINCE] === 0 ? null : (this.#slots[TASK] ?? null);
  }
}

/** Processor time of a thread of this process; 0 if it has ended. */
async function cpuMsOf(threadId: number): Promise<number> {
  const schedstat = await readFile(`/proc/self/task/${threadId}/schedstat`, "utf8").catch(() => "0");
  return Number(schedstat.split(" ")[0]) / 1e6;
}
