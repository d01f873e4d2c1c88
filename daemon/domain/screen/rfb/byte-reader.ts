/**
 * Reads fields from a stream of bytes, independent of chunk boundaries. It holds one chunk and the requested field. Reads are charged to an
 * allowance.
 */
import { loopTime, type OwnerName, Pieces } from "../../../core/loop/index.ts";
import type { Allowance } from "../../../host/guest-link/pace.ts";
import { RfbError } from "./limits.ts";

const EMPTY = new Uint8Array(0);
/** Number of reads charged together, followed by a yield: a yield costs more than most reads. */
const READS_TOGETHER = 256;

export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = EMPTY;
  #at = 0;
  readonly #reads: Allowance;
  readonly #pieces: Pieces;
  #unpaid = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, reads: Allowance, owner: OwnerName) {
    this.#pieces = new Pieces(loopTime, owner, "room.screen");
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#reads = reads;
  }

  /** Fills `target`. Throws RfbError if the stream ends before it is full. */
  async fill(target: Uint8Array): Promise<void> {
    const turn = this.#pay();
    if (turn) await turn;
    for (let filled = 0; filled < target.byteLength; ) {
      if (this.#at === this.#chunk.byteLength) await this.#next();
      const part = this.#chunk.subarray(this.#at, this.#at + target.byteLength - filled);
      target.set(part, filled);
      filled += part.byteLength;
      this.#at += part.byteLength;
    }
  }

  /** Reads `count` bytes into a separate buffer; the caller has bounded `count`. */
  async bytes(count: number): Promise<Buffer> {
    const taken = Buffer.alloc(count);
    await this.fill(taken);
    return taken;
  }

  async u8(): Promise<number> {
    return (await this.bytes(1)).readUInt8();
  }

  async u16(): Promise<number> {
    return (await this.bytes(2)).readUInt16BE();
  }

  async u32(): Promise<number> {
    return (await this.bytes(4)).readUInt32BE();
  }

  /** Drops `count` bytes without buffering them. */
  async skip(count: number): Promise<void> {
    const turn = this.#pay();
    if (turn) await turn;
    for (let left = count; left > 0; ) {
      if (this.#at === this.#chunk.byteLength) await this.#next();
      const part = Math.min(left, this.#chunk.byteLength - this.#at);
      this.#at += part;
      left -= part;
    }
  }

  /** Otherwise a server with one-byte messages could use all of the event loop's time. */
  #pay(): Promise<void> | null {
    if (++this.#unpaid < READS_TOGETHER) return null;
    this.#unpaid = 0;
    // A slow reader never exceeds its allowance, but must still yield to other work.
    return this.#reads.pay(READS_TOGETHER) ?? this.#pieces.turn();
  }

  async #next(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    if (done) throw new RfbError("the connection ended");
    this.#chunk = value;
    this.#at = 0;
  }
}
