/**
 * SHA-256 of bytes that arrive in pieces. Long input is hashed by a dedicated thread, started on first use: a gigabyte is half a second of
 * work, and the event loop only copies it. Short input is hashed here, since a message costs more.
 *
 *     add ─▶ first bytes ──more than a block──▶ two blocks in turns ─▶ thread
 *                 └──────────digest──────────▶ here
 */
import { loopTime } from "../../core/loop/index.ts";

/** A turn of the thread: a caller that hashes much delays others by no more than this takes, about 0.15 ms. */
const BLOCK_BYTES = 256 * 1024;
const BLOCKS = 2;

export type HashOrder =
  | { does: "begin"; id: number; blocks: SharedArrayBuffer }
  | { does: "add"; id: number; at: number; bytes: number }
  | { does: "end" | "forget"; id: number };

/** Report of the thread: the oldest added block was hashed, or all of them were. */
export type HashTold = { id: number; hex?: string };

interface HashRequest {
  /** Called at the thread's answer. */
  go(): void;
  resolve(hex: string): void;
  reject(error: Error): void;
}

export class Hash implements Disposable {
  /** The first blocks; null once the thread has them. */
  #first: Uint8Array[] | null = [];
  #firstBytes = 0;
  #threaded: ThreadedHash | null = null;

  /** Adds bytes. The caller may reuse them when this resolves; null: immediately. */
  add(bytes: Uint8Array): Promise<void> | null {
    if (!this.#first || this.#firstBytes + bytes.byteLength > BLOCK_BYTES) return this.#addByThread(bytes);
    this.#first.push(new Uint8Array(bytes));
    this.#firstBytes += bytes.byteLength;
    return null;
  }

  /** In hex. */
  async digest(): Promise<string> {
    if (this.#threaded) return await this.#threaded.digest();
    const hash = new Bun.CryptoHasher("sha256");
    for (const bytes of this.#first ?? []) hash.update(bytes);
    return hash.digest("hex");
  }

  /** Discards the hash. */
  [Symbol.dispose](): void {
    this.#threaded?.[Symbol.dispose]();
  }

  async #addByThread(bytes: Uint8Array): Promise<void> {
    this.#threaded ??= new ThreadedHash();
    const first = this.#first ?? [];
    this.#first = null;
    for (const each of first) await this.#threaded.add(each);
    await this.#threaded.add(bytes);
  }
}

let thread: Worker | null = null;
let nextId = 1;
const underWay = new Map<number, ThreadedHash>();

class ThreadedHash implements Disposable {
  readonly #id = nextId++;
  readonly #blocks: Uint8Array;
  /** The block being filled, and its fill level. */
  #block = 0;
  #filled = 0;
  /** The pending orders: each block sent to the thread and not hashed yet, in order; then the digest. */
  readonly #asked: HashRequest[] = [];
  readonly #free: (Promise<string> | null)[] = Array.from({ length: BLOCKS }, () => null);
  /** Why the thread no longer has this hash. */
  #failure: Error | null = null;

  constructor() {
    const blocks = new SharedArrayBuffer(BLOCKS * BLOCK_BYTES);
    this.#blocks = new Uint8Array(blocks);
    underWay.set(this.#id, this);
    send({ does: "begin", id: this.#id, blocks });
  }

  async add(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      await this.#free[this.#block];
      const part = bytes.subarray(at, at + BLOCK_BYTES - this.#filled);
      this.#blocks.set(part, this.#block * BLOCK_BYTES + this.#filled);
      this.#filled += part.byteLength;
      at += part.byteLength;
      if (this.#filled === BLOCK_BYTES) this.#hand();
    }
  }

  async digest(): Promise<string> {
    if (this.#filled > 0) this.#hand();
    const hex = this.#answer();
    send({ does: "end", id: this.#id });
    return await hex;
  }

  /** For the thread: it has completed the oldest order. */
  told(hex: string): void {
    const request = this.#asked.shift();
    request?.go();
    request?.resolve(hex);
  }

  fail(error: Error): void {
    this.#failure = error;
    for (const { reject } of this.#asked.splice(0)) reject(error);
  }

  [Symbol.dispose](): void {
    if (underWay.delete(this.#id)) send({ does: "forget", id: this.#id });
  }

  #hand(): void {
    this.#free[this.#block] = this.#answer();
    send({ does: "add", id: this.#id, at: this.#block * BLOCK_BYTES, bytes: this.#filled });
    this.#block = (this.#block + 1) % BLOCKS;
    this.#filled = 0;
  }

  #answer(): Promise<string> {
    if (this.#failure) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const go = loopTime.continuation("file");
    // Callers that await the block, or the digest, get the error; there may be none.
    promise.catch(() => {});
    this.#asked.push({ go, resolve, reject });
    return promise;
  }
}

function send(order: HashOrder): void {
  thread ??= startThread();
  thread.postMessage(order);
}

function startThread(): Worker {
  const made = new Worker(new URL("./hash-thread.ts", import.meta.url).href);
  made.unref();
  made.onmessage = ({ data: { id, hex = "" } }: MessageEvent<HashTold>) => underWay.get(id)?.told(hex);
  made.onerror = ({ message }) => {
    thread = null;
    const error = new Error(`the thread that hashes has ended: ${message}`);
    for (const hash of underWay.values()) hash.fail(error);
    underWay.clear();
  };
  return made;
}
