/**
 * One service thread, from the event loop's side.
 *
 *   loading ──▶ ready ──▶ ended: by an error, an exit, or a stalled part; its tasks fail with ThreadEnded
 */
import { startTimer, stopTimer } from "../clock.ts";
import { within } from "../concurrency/published.ts";
import { loopTime, type OwnerName } from "../loop/index.ts";
import { errorOf, type FromThread, PartBoard, type TaskPart, type ToThread } from "./messages.ts";

/** Number of checks within the maximum duration of a part. */
const STALL_CHECKS = 5;
const CLOSE_MS = 5_000;

export class ThreadEnded extends Error {
  /** Whether a part of the task was running when its thread ended, and may have caused the end. */
  readonly wasRunning: boolean;

  constructor(message: string, wasRunning = false) {
    super(message);
    this.wasRunning = wasRunning;
  }
}

/** A task in a thread. */
interface Job {
  owner: OwnerName;
  parts: TaskPart[];
  failure: Error | null;
  wake(): void;
}

/** A task for the thread, which finds it by name. */
export interface Order {
  task: string;
  input: unknown;
  /** Buffers of the input that are moved to the thread. */
  transfer?: ArrayBuffer[];
  owner: OwnerName;
  /** Cancels the task when its output is no longer needed. */
  signal: AbortSignal;
}

export interface ThreadOptions {
  /** In messages: "a reader thread". */
  name: string;
  /** Creates the worker, whose entry calls serveThread. */
  start(): Worker;
  /** Passed to the thread first. */
  opening?: unknown;
  /** Longest time of a part. */
  stallMs: number;
  /** Maximum processor time of a part; on a busy host its elapsed time may be many times as long. */
  cpuMs?: number;
}

export class ServiceThread {
  readonly #worker: Worker;
  readonly #board = new PartBoard();
  readonly #jobs = new Map<number, Job>();
  readonly #loaded = Promise.withResolvers<boolean>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #name: string;
  readonly #onEnd: (reason: string) => void;
  readonly #stallMs: number;
  readonly #cpuMs: number;
  #lastId = 0;
  #stallCheck: Timer | null = null;
  #hasEnded = false;

  constructor({ name, start, opening, stallMs, cpuMs = stallMs }: ThreadOptions, onEnd: (reason: string) => void) {
    this.#name = name;
    this.#onEnd = onEnd;
    this.#stallMs = stallMs;
    this.#cpuMs = cpuMs;
    this.#worker = start();
    let reason = "it exited";
    this.#worker.onmessage = ({ data }: MessageEvent<FromThread>) => this.#receive(data);
    this.#worker.onerror = ({ message }) => {
      reason = message;
    };
    this.#worker.addEventListener("close", () => this.#end(reason));
    this.#worker.unref();
    this.#send({ is: "open", opening, board: this.#board.memory });
  }

  /** Resolves to true once the thread answers, or to false if it has ended before. */
  get loaded(): Promise<boolean> {
    return this.#loaded.promise;
  }

  /** Tasks under way. */
  get load(): number {
    return this.#jobs.size;
  }

  /** Parts of the output, in order. Rejects with ThreadEnded, the signal's reason, or the task's error. */
  async *run({ signal, transfer = [], ...order }: Order): AsyncGenerator<TaskPart> {
    signal.throwIfAborted();
    if (this.#hasEnded) throw new ThreadEnded(`${this.#name} has ended`);
    const id = ++this.#lastId;
    const job: Job = { owner: order.owner, parts: [], failure: null, wake: () => {} };
    const abort = () => job.wake();
    signal.addEventListener("abort", abort, { once: true });
    this.#jobs.set(id, job);
    this.#watch();
    this.#send({ is: "run", id, ...order }, transfer);
    let isLast = false;
    try {
      while (!isLast) {
        signal.throwIfAborted();
        const part = job.parts.shift();
        if (!part) {
          if (job.failure) throw job.failure;
          await new Promise<void>((wake) => Object.assign(job, { wake }));
          continue;
        }
        isLast = part.isLast;
        if (!isLast) this.#send({ is: "taken", id });
        yield part;
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#jobs.delete(id);
      if (!isLast && !job.failure) this.#send({ is: "cancel", id });
    }
  }

  /** The only part of a task. Rejects as `run` does. */
  async runOnce(order: Order): Promise<unknown> {
    let value: unknown;
    for await (const part of this.run(order)) value = part.value;
    return value;
  }

  /** Lets the thread close its resources, then ends it. Waits for a thread that is still loading. */
  async close(): Promise<void> {
    const closed = this.loaded.then(async (isLoaded) => {
      if (!isLoaded) return;
      this.#send({ is: "close" });
      await this.#closed.promise;
    });
    const isClosed = await within(closed, CLOSE_MS, this.#name).then(
      () => true,
      () => false,
    );
    this.#stop("it was closed");
    if (isClosed) this.#worker.terminate();
  }

  #send(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #receive(message: FromThread): void {
    if (message.is === "ready") this.#loaded.resolve(true);
    else if (message.is === "closed") this.#closed.resolve();
    else {
      const job = this.#jobs.get(message.id);
      if (!job) return;
      loopTime.goesOn(job.owner, "thread");
      if (message.is === "part") job.parts.push(message);
      else job.failure = errorOf(message.failure);
      job.wake();
    }
  }

  /** While tasks are in progress: ends the thread if a part takes too long. */
  #watch(): void {
    const watch = async () => {
      const reason = await this.#stalled();
      if (this.#hasEnded) return;
      this.#stallCheck = null;
      if (reason !== null) {
        this.#end(reason);
        this.#worker.terminate();
      } else if (this.#jobs.size > 0) this.#watch();
    };
    this.#stallCheck ??= startTimer(() => void watch(), Math.min(this.#stallMs, this.#cpuMs) / STALL_CHECKS).unref();
  }

  async #stalled(): Promise<string | null> {
    const { ms } = this.#board;
    if (ms > this.#stallMs) return `a part took over ${this.#stallMs} ms`;
    const isSlow = ms > this.#cpuMs && (await this.#board.cpuMs()) > this.#cpuMs;
    return isSlow ? `a part took over ${this.#cpuMs} ms of processor time` : null;
  }

  #end(reason: string): void {
    if (this.#hasEnded) return;
    this.#stop(reason);
    this.#onEnd(reason);
  }

  /** Fails all tasks in progress. */
  #stop(reason: string): void {
    this.#hasEnded = true;
    stopTimer(this.#stallCheck);
    this.#loaded.resolve(false);
    this.#closed.resolve();
    const { task } = this.#board;
    for (const [id, job] of this.#jobs) {
      job.failure ??= new ThreadEnded(`${this.#name} has ended: ${reason}`, id === task);
      job.wake();
    }
  }
}
