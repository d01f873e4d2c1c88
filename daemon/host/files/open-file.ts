/** A regular file held open: its bytes, read and written off the event loop's thread. */
import { fchmodSync, fchownSync } from "node:fs";
import type { PieceTurns } from "../../core/loop/index.ts";
import { errnoOf } from "../../core/service-error.ts";
import { close, readSome, sync, writeSome } from "./async-calls.ts";
import { type Facts, readFacts, readUse } from "./facts.ts";
import { Hash } from "./hash.ts";
import { findData } from "./holes.ts";
import { reserveSpace } from "./libc.ts";

/** Long enough to be fast, short enough that the hash of a chunk blocks for at most a millisecond. */
export const CHUNK_BYTES = 256 * 1024;
/** Bytes of a large file between flushes: other commits wait for the disk too, but not for a whole file. */
export const SYNC_EVERY_BYTES = 16 * 1024 * 1024;

/** Most data of a file that counts as nearly all holes. */
const MAX_IN_HOLLOW_BYTES = 1024 * 1024;

/** A user and a group by their numbers in guests. */
export interface GuestOwner {
  uid: number;
  gid: number;
}

export const GUEST_ROOT: GuestOwner = { uid: 0, gid: 0 };

export class OpenFile implements AsyncDisposable {
  readonly #descriptor: number;
  /** The file's facts when it was opened. */
  readonly facts: Facts;
  readonly #root: number;
  #closed = false;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(descriptor: number, facts: Facts, root: number) {
    this.#descriptor = descriptor;
    this.#root = root;
    this.facts = facts;
  }

  freshFacts(): Facts {
    return readFacts(this.#open);
  }

  get inode(): bigint {
    return readUse(this.#open).inode;
  }

  /** The bytes from `offset`; fewer than `length` if the file ends before. */
  async read(offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(length);
    let filled = 0;
    while (filled < length) {
      const count = await this.#call((file) => readSome(file, bytes.subarray(filled), offset + filled));
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  }

  /**
   * SHA-256 of the first `length` bytes, or of all if the file is shorter, in hex. Ends early with the signal. For a file that was opened
   * to be read or appended to: its position moves. In a file that is nearly all holes the holes are not read: whatever their size, they
   * would go through the page cache. With more data, there could be so many holes that finding them took longer than reading them.
   */
  async digest(length: number, signal: AbortSignal, pieces: PieceTurns): Promise<string> {
    using hash = new Hash();
    const buffer = Buffer.allocUnsafeSlow(Math.min(length, CHUNK_BYTES));
    const isHollow = length > CHUNK_BYTES && this.facts.allocated_bytes <= MAX_IN_HOLLOW_BYTES;
    let holeEnd = 0;
    for (let at = 0; at < length; ) {
      signal.throwIfAborted();
      // A small file is one piece.
      if (length > CHUNK_BYTES) await pieces.next();
      const want = buffer.subarray(0, Math.min(CHUNK_BYTES, length - at));
      if (isHollow && at >= holeEnd) holeEnd = await this.#call((file) => findData(file, at));
      const isHole = at + want.length <= holeEnd;
      const count = isHole ? want.fill(0).length : await this.#call((file) => readSome(file, want, at));
      if (count === 0) break;
      await hash.add(want.subarray(0, count));
      at += count;
    }
    return await hash.digest();
  }

  /** Writes all of it at the file's position, or at its end when it was opened to append. Throws ENOSPC, EDQUOT. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      at += await this.#call((file) => writeSome(file, bytes.subarray(at)));
    }
  }

  /** Reserves space after the end, so that a write of this length cannot fail midway. Throws ENOSPC, EDQUOT. */
  reserve(length: number): void {
    if (length === 0) return;
    try {
      reserveSpace(this.#open, this.freshFacts().size_bytes, length);
    } catch (error) {
      if (errnoOf(error) !== "EOPNOTSUPP") throw error;
    }
  }

  /** Gives the file to a user of the guests, as files of their own processes are, and sets its mode. */
  own(mode: number, owner = GUEST_ROOT): void {
    this.setOwner(owner);
    this.setMode(mode);
  }

  setOwner({ uid, gid }: GuestOwner): void {
    if (process.geteuid?.() === 0) fchownSync(this.#open, this.#root + uid, this.#root + gid);
  }

  setMode(mode: number): void {
    fchmodSync(this.#open, mode);
  }

  /** Makes the bytes survive a crash of the host. */
  sync(): Promise<void> {
    return this.#call(sync);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // The number of a closed descriptor is soon another file's: a call in progress must not reach that file.
    await Promise.allSettled(this.#underWay);
    await close(this.#descriptor);
  }

  get #open(): number {
    if (this.#closed) throw new Error("the file is closed");
    return this.#descriptor;
  }

  async #call<T>(start: (descriptor: number) => Promise<T>): Promise<T> {
    const call = start(this.#open);
    this.#underWay.add(call);
    try {
      return await call;
    } finally {
      this.#underWay.delete(call);
    }
  }
}
