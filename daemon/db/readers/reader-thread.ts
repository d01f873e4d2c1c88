/**
 * One reader thread as the event loop sees it.
 *
 *   loading ──▶ ready ──▶ ended: by an error, an exit, or a stalled part; its reads fail with ThreadEnded
 */

import { startTimer, stopTimer } from "../../core/clock.ts";
import type { OwnerName } from "../../core/loop/index.ts";
import { within } from "../../core/published.ts";
import { type FromReader, PartBoard, type ToReader } from "./messages.ts";
import type { AnyRead } from "./read.ts";

/** Checks of the running part in the time that it may take. */
const STALL_CHECKS = 5;
const CLOSE_MS = 5_000;

export class ThreadEnded extends Error {}

type PartMessage = Extract<FromReader, { is: "part" }>;

/** A read in a thread. */
interface Job {
  parts: PartMessage[];
  failure: Error | null;
  wake(): void;
}

export interface ReaderThreadOptions {
  /** Starts the thread, whose entry calls serveReads. */
  start(): Worker;
  file: string;
  /** Longest time of a part, which is expected to take some milliseconds. */
  stallMs: number;
  onEnd(reason: string): void;
}

export class ReaderThread {
  readonly #worker: Worker;
  readonly #board = new PartBoard();
  readonly #jobs = new Map<number, Job>();
  readonly #loaded = Promise.withResolvers<boolean>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #onEnd: (reason: string) => void;
  readonly #stallMs: number;
  #lastId = 0;
  #stallCheck: Timer | null = null;
  #hasEnded = false;

  constructor({ start, file, stallMs, onEnd }: ReaderThreadOptions) {
    this.#onEnd = onEnd;
    this.#stallMs = stallMs;
    this.#worker = start();
    let reason = "it exited";
    this.#worker.onmessage = ({ data }: MessageEvent<FromReader>) => this.#receive(data);
    this.#worker.onerror = ({ message }) => {
      reason = message;
    };
    this.#worker.addEventListener("close", () => this.#end(reason));
    this.#worker.unref();
    this.#send({ is: "open", file, board: this.#board.memory });
  }

  /** Resolves once it answers, or has ended before: false. */
  get loaded(): Promise<boolean> {
    return this.#loaded.promise;
  }

  /** Reads under way. */
  get load(): number {
    return this.#jobs.size;
  }

  /** Parts of an answer, in their order; a whole answer is one. Rejects with ThreadEnded, the signal's reason, or what the read has thrown. */
  async *read(
    read: AnyRead,
    input: unknown,
    { owner, signal }: { owner: OwnerName; signal: AbortSignal },
    isWhole: boolean,
  ): AsyncGenerator<PartMessage> {
    signal.throwIfAborted();
    if (this.#hasEnded) throw new ThreadEnded("the reader thread has ended");
    const id = ++this.#lastId;
    const job: Job = { parts: [], failure: null, wake: () => {} };
    const abort = () => job.wake();
    signal.addEventListener("abort", abort, { once: true });
    this.#jobs.set(id, job);
    this.#watch();
    this.#send({ is: "read", id, read: read.name, input, owner, isWhole });
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

  /** Has it close its connection, then ends it. A thread that is still loading is not ended before it has loaded. */
  async close(): Promise<void> {
    const closed = this.loaded.then(async (isLoaded) => {
      if (!isLoaded) return;
      this.#send({ is: "close" });
      await this.#closed.promise;
    });
    const isClosed = await within(closed, CLOSE_MS, "a reader thread").then(
      () => true,
      () => false,
    );
    this.#stop("it was closed");
    if (isClosed) this.#worker.terminate();
  }

  #send(message: ToReader): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromReader): void {
    if (message.is === "ready") this.#loaded.resolve(true);
    else if (message.is === "closed") this.#closed.resolve();
    else {
      const job = this.#jobs.get(message.id);
      if (!job) return;
      if (message.is === "part") job.parts.push(message);
      else job.failure = new Error(message.error);
      job.wake();
    }
  }

  /** Ends the thread if a part of it stalls, as long as reads are under way. */
  #watch(): void {
    this.#stallCheck ??= startTimer(() => {
      this.#stallCheck = null;
      if (this.#board.ms > this.#stallMs) {
        this.#end(`a part took over ${this.#stallMs} ms`);
        this.#worker.terminate();
      } else if (this.#jobs.size > 0) this.#watch();
    }, this.#stallMs / STALL_CHECKS).unref();
  }

  #end(reason: string): void {
    if (this.#hasEnded) return;
    this.#stop(reason);
    this.#onEnd(reason);
  }

  /** Fails the reads that are under way. */
  #stop(reason: string): void {
    this.#hasEnded = true;
    stopTimer(this.#stallCheck);
    this.#loaded.resolve(false);
    this.#closed.resolve();
    for (const job of this.#jobs.values()) {
      job.failure ??= new ThreadEnded(`a reader thread has ended: ${reason}`);
      job.wake();
    }
  }
}
