/**
 * Reader threads of the database. Reads of any size run there; the event loop only sends their bytes.
 *
 *   verb ──read, input──▶ pool ──▶ thread: parts of some ms, fair by owner ──▶ part ──▶ flush in progress is over ──▶ verb
 *
 * A part starts after the call arrived, so it sees every acknowledged write; it may see a commit that is not flushed, and then waits for
 * the flush. Until the first thread is ready, and after three of them have ended within a minute, reads run on the event loop in pieces.
 */
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { TaskPart } from "../../core/threads/messages.ts";
import { ThreadPool } from "../../core/threads/pool.ts";
import { type ServiceThread, ThreadEnded } from "../../core/threads/thread.ts";
import type { Database } from "../transact.ts";
import { partsHere, type Reader } from "./here.ts";
import type { Lines, Read, ReadResult } from "./read.ts";
import type { ReadOrder, ReadPart } from "./serve.ts";

/** Time for a thread that takes over the reads of an ended thread. */
const REPLACED_MS = 5_000;
const STALL_MS = 5_000;

/** Reads, wherever they run. */
export interface Reads {
  /** The whole answer. Rejects with not_ready if two threads ended during the read. */
  read<Input, Output, Rest>(
    read: Read<Input, Output, Rest>,
    input: Input,
    by: Reader,
  ): Promise<ReadResult<Output, Rest>>;
  /** Lines of JSON, produced as they are consumed. Throws as `read` does. */
  lines<Input>(read: Read<Input, Lines>, input: Input, by: Reader): AsyncGenerator<Uint8Array>;
}

export interface ReadPoolOptions {
  file: string;
  count: number;
  /** Creates a worker, whose entry calls serveReads. */
  start(): Worker;
  /** Maximum duration of a part, after which its thread counts as ended; default 5 s. */
  stallMs?: number;
  log: Log;
}

type Source = Pick<Database, "queries" | "unflushed">;

export class ReadPool implements Reads {
  readonly #database: Source;
  readonly #threads: ThreadPool;

  /** Without options, all reads run on the event loop. */
  constructor(database: Source, options: ReadPoolOptions | null) {
    this.#database = database;
    this.#threads = new ThreadPool(
      options && { stallMs: STALL_MS, ...options, name: "a reader thread", opening: options.file },
    );
  }

  /** Whether threads ended so often that reads run on the event loop. */
  get isDegraded(): boolean {
    return this.#threads.isDegraded;
  }

  /** Threads that take reads. */
  get threads(): number {
    return this.#threads.threads;
  }

  /** Resolves once all threads are ready, or no further thread is being started. */
  started(): Promise<void> {
    return this.#threads.started();
  }

  async read<Input, Output, Rest>(
    read: Read<Input, Output, Rest>,
    input: Input,
    by: Reader,
  ): Promise<ReadResult<Output, Rest>> {
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

  close(): Promise<void> {
    return this.#threads.close();
  }

  /** Yields a part only after the commits that it shows are flushed: no power loss can undo them. */
  async *#parts<Input>(
    read: Read<Input, unknown, unknown>,
    given: Input,
    by: Reader,
    { attempt, isWhole }: { attempt: number; isWhole: boolean },
  ): AsyncGenerator<ReadPart> {
    const thread = await this.#thread(attempt);
    const parts = thread
      ? valuesOf(thread.run({ task: read.name, input: { given, isWhole } satisfies ReadOrder, ...by }))
      : asBytes(partsHere(read, this.#database.queries, given, by));
    for await (const part of parts) {
      const unflushed = this.#database.unflushed(by.owner, read.isOfRecords);
      if (unflushed) await unflushed;
      yield part;
    }
  }

  /** Null: the read runs here. A read may have ended its own thread: a retry never runs here. */
  async #thread(attempt: number): Promise<ServiceThread | null> {
    if (attempt === 1) return this.#threads.thread;
    const thread = await this.#threads.threadWithin(REPLACED_MS);
    if (!thread) throw new ThreadEnded("no reader thread is ready");
    return thread;
  }
}

function requireAgain(error: unknown, attempt: number): void {
  if (!(error instanceof ThreadEnded)) throw error;
  if (attempt > 1) throw new ServiceError("not_ready", { detail: "The read was interrupted.", cause: error });
}

async function* valuesOf(parts: AsyncGenerator<TaskPart>): AsyncGenerator<ReadPart> {
  for await (const { value } of parts) yield value as ReadPart;
}

async function* asBytes(parts: ReturnType<typeof partsHere>): AsyncGenerator<ReadPart> {
  for await (const { text, rest } of parts) yield { bytes: new TextEncoder().encode(text), rest };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  return parts.length === 1 && first ? first : Buffer.concat(parts);
}
