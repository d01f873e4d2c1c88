/**
 * Reader threads of the database. Reads of any size run there, so that the event loop is left with sending their bytes.
 *
 *   verb ──read, input──▶ pool ──▶ thread: parts of some ms, fair by owner ──▶ part ──▶ flush under way is over ──▶ verb
 *
 * A part starts after the call arrived, so it sees every acknowledged write; it may see a commit that is not flushed, and then waits for the
 * flush. Until the first thread is ready, and after three of them have ended within a minute, reads run on the event loop in pieces.
 */

import { monotonicMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { within } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Database } from "../transact.ts";
import { partsHere, type Reader } from "./here.ts";
import type { Answer, Lines, Read } from "./read.ts";
import { ReaderThread, ThreadEnded } from "./reader-thread.ts";

const MOST_ENDS = 3;
const ENDS_WITHIN_MS = 60_000;
/** Time for a thread that takes over the reads of one that has ended. */
const REPLACED_MS = 5_000;
const STALL_MS = 5_000;

/** Reads, wherever they run. */
export interface Reads {
  /** The whole answer. Rejects with not_ready if two threads have ended during the read. */
  read<Input, Output, Rest>(read: Read<Input, Output, Rest>, input: Input, by: Reader): Promise<Answer<Output, Rest>>;
  /** Lines of JSON, as they are taken. Throws as `read` does. */
  lines<Input>(read: Read<Input, Lines>, input: Input, by: Reader): AsyncGenerator<Uint8Array>;
}

export interface ReadPoolOptions {
  file: string;
  count: number;
  /** Starts a thread, whose entry calls serveReads. */
  start(): Worker;
  /** Longest time of a part before its thread counts as ended; 5 s if absent. */
  stallMs?: number;
  log: Log;
}

type Source = Pick<Database, "queries" | "unflushed" | "unflushedChanges">;

interface Taken {
  bytes: Uint8Array;
  rest: unknown;
}

export class ReadPool implements Reads {
  readonly #database: Source;
  readonly #options: ReadPoolOptions | null;
  readonly #ready = new Set<ReaderThread>();
  #loading: ReaderThread | null = null;
  readonly #ends: number[] = [];
  #isClosed = false;

  /** Without options all reads run on the event loop. */
  constructor(database: Source, options: ReadPoolOptions | null) {
    this.#database = database;
    this.#options = options;
    this.#startNext();
  }

  /** Whether threads have ended so often that reads run on the event loop. */
  get isDegraded(): boolean {
    return this.#ends.length >= MOST_ENDS;
  }

  /** Threads that take reads. */
  get threads(): number {
    return this.#ready.size;
  }

  /** Resolves once all threads are ready, or no more are started. */
  async started(): Promise<void> {
    while (this.#loading) {
      await this.#loading.loaded;
    }
  }

  async read<Input, Output, Rest>(
    read: Read<Input, Output, Rest>,
    input: Input,
    by: Reader,
  ): Promise<Answer<Output, Rest>> {
    for (let attempt = 1; ; attempt++) {
      const parts: Uint8Array[] = [];
      let rest: unknown;
      try {
        for await (const part of this.#parts(read, input, by, { attempt, isWhole: true })) {
          parts.push(part.bytes);
          rest = part.rest ?? rest;
        }
        return { bytes: joined(parts), rest: rest as Rest | undefined };
      } catch (error) {
        requireAgain(error, attempt);
      }
    }
  }

  async *lines<Input>(read: Read<Input, Lines>, input: Input, by: Reader): AsyncGenerator<Uint8Array> {
    let from = input;
    for (let attempt = 1; ; attempt++) {
      try {
        for await (const { bytes, rest } of this.#parts(read, from, by, { attempt, isWhole: false })) {
          if (rest !== undefined) from = rest as Input;
          if (bytes.byteLength > 0) yield bytes;
        }
        return;
      } catch (error) {
        requireAgain(error, attempt);
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#ready, ...(this.#loading ? [this.#loading] : [])];
    this.#ready.clear();
    await Promise.all(threads.map((thread) => thread.close()));
  }

  /** Parts contain flushed commits only: no loss of power can undo a part that was returned. */
  async *#parts<Input>(
    read: Read<Input, unknown, unknown>,
    input: Input,
    by: Reader,
    { attempt, isWhole }: { attempt: number; isWhole: boolean },
  ): AsyncGenerator<Taken> {
    const thread = await this.#thread(attempt);
    const parts = thread
      ? thread.read(read, input, by, isWhole)
      : asBytes(partsHere(read, this.#database.queries, input, by));
    for await (const part of parts) {
      const unflushed = read.isOfRecords ? this.#database.unflushed() : this.#database.unflushedChanges();
      if (unflushed) await unflushed;
      yield part;
    }
  }

  /** The least loaded thread; null: the read runs here. A read whose thread has ended may have ended it: it never runs here. */
  async #thread(attempt: number): Promise<ReaderThread | null> {
    if (attempt > 1 && this.#ready.size === 0) {
      await within(this.#loading?.loaded ?? Promise.resolve(false), REPLACED_MS, "a reader thread").catch(() => {});
      if (this.#ready.size === 0) throw new ThreadEnded("no reader thread is ready");
    }
    let least: ReaderThread | null = null;
    for (const thread of this.#ready) if (!least || thread.load < least.load) least = thread;
    return least;
  }

  /** One after another: databases that several threads open simultaneously may seem empty to some (oven-sh/bun#34446). */
  #startNext(): void {
    const options = this.#options;
    if (!options || this.#loading || this.#isClosed || this.isDegraded || this.#ready.size >= options.count) return;
    const thread: ReaderThread = new ReaderThread({
      stallMs: STALL_MS,
      ...options,
      onEnd: (reason) => this.#ended(thread, reason),
    });
    this.#loading = thread;
    void thread.loaded.then((isLoaded) => {
      this.#loading = null;
      if (isLoaded && !this.#isClosed) this.#ready.add(thread);
      this.#startNext();
    });
  }

  #ended(thread: ReaderThread, reason: string): void {
    this.#ready.delete(thread);
    if (this.#isClosed) return;
    const now = monotonicMs();
    while (this.#ends[0] !== undefined && now - this.#ends[0] > ENDS_WITHIN_MS) this.#ends.shift();
    this.#ends.push(now);
    this.#options?.log.warn("a reader thread has ended", { reason, restarts: !this.isDegraded });
    this.#startNext();
  }
}

function requireAgain(error: unknown, attempt: number): void {
  if (!(error instanceof ThreadEnded)) throw error;
  if (attempt > 1) throw new ServiceError("not_ready", { detail: "The read was interrupted.", cause: error });
}

async function* asBytes(parts: ReturnType<typeof partsHere>): AsyncGenerator<Taken> {
  for await (const { text, rest } of parts) yield { bytes: new TextEncoder().encode(text), rest };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  return parts.length === 1 && first ? first : Buffer.concat(parts);
}
