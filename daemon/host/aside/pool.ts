/**
 * The aside thread: computations of a length that a client or guest chooses, with a deadline. Owners share its time.
 *
 *     task ─▶ short input: here
 *        └──▶ thread ─▶ output
 *                  └──▶ deadline exceeded, or the thread exited: the running task fails with `internal`; others run in its
 *                       replacement, unless their buffers were in the exited thread: then `not_ready`
 */
import type { OwnerName } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { ThreadPool, type ThreadPoolOptions } from "../../core/threads/pool.ts";
import { ThreadEnded } from "../../core/threads/thread.ts";
import type { Task } from "./task.ts";

/** Maximum processor time of one task. */
const DEADLINE_MS = 2_000;
const STALL_MS = 30_000;
const REST_MS = 10_000;
/** Timeout of the wait for a replacement thread, which starts after a rest. */
const READY_MS = 15_000;

/** Tasks, wherever they run. */
export interface Aside {
  /** Rejects with the task's error, internal, not_ready, or the signal's reason. */
  run<Input, Output>(task: Task<Input, Output>, input: Input, by: Asker): Promise<Output>;
}

export interface Asker {
  owner: OwnerName;
  /** Ends the wait for an unwanted task; a running task is not interrupted. */
  signal?: AbortSignal | undefined;
}

export type AsideOptions = Pick<ThreadPoolOptions, "start" | "log"> &
  Partial<Pick<ThreadPoolOptions, "cpuMs" | "restMs">>;

const NEVER = new AbortController().signal;

export class AsidePool implements Aside {
  readonly #threads: ThreadPool;
  readonly #hasThread: boolean;

  /** Without options all tasks run on the event loop. */
  constructor(options: AsideOptions | null) {
    this.#hasThread = options !== null;
    const usual = { name: "the aside thread", count: 1, stallMs: STALL_MS, cpuMs: DEADLINE_MS, restMs: REST_MS };
    this.#threads = new ThreadPool(options && { ...usual, ...options });
  }

  /** Whether threads have ended three times within a minute. */
  get isDegraded(): boolean {
    return this.#threads.isDegraded;
  }

  /** Resolves once the thread is ready, or is not started for now. */
  started(): Promise<void> {
    return this.#threads.started();
  }

  async run<Input, Output>(task: Task<Input, Output>, input: Input, by: Asker): Promise<Output> {
    const bytes = task.bytesOf(input);
    if (bytes > task.mostBytes) throw new Error(`${task.name} of ${bytes} bytes`);
    if (bytes <= task.smallBytes || !this.#hasThread) return task.run(input);
    const { owner, signal = NEVER } = by;
    const transfer = task.buffersOf?.(input) ?? [];
    for (let attempt = 1; ; attempt++) {
      const thread = await this.#threads.threadWithin(READY_MS, signal);
      signal.throwIfAborted();
      if (!thread) throw new ServiceError("not_ready", { detail: "The service cannot compute this yet." });
      try {
        return (await thread.runOnce({ task: task.name, input, transfer, owner, signal })) as Output;
      } catch (error) {
        if (!(error instanceof ThreadEnded)) throw error;
        if (error.wasRunning) throw new ServiceError("internal", { cause: error });
        if (attempt > 1 || transfer.length > 0)
          throw new ServiceError("not_ready", { detail: "The call was interrupted.", cause: error });
      }
    }
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}
