/**
 * A terminal's recent output: its last bytes, each with its offset in all output so far. The agent has it, and the host a copy while the
 * terminal has viewers.
 *
 *     0 ········ oldest ████████████ end
 *       (gone)          (retained, a ring)
 */

/** Enough for many screens; a terminal uses as much memory as it has output, at most this. */
export const HISTORY_BYTES = 1024 * 1024;
const FIRST_BYTES = 16 * 1024;

export class History {
  readonly #most: number;
  readonly #start: number;
  #ring: Uint8Array;
  #end: number;

  /** `start` is the offset of the first byte that will be appended. */
  constructor(mostBytes = HISTORY_BYTES, start = 0) {
    this.#most = mostBytes;
    this.#start = start;
    this.#end = start;
    this.#ring = new Uint8Array(Math.min(FIRST_BYTES, mostBytes));
  }

  /** Offset after the newest byte. */
  get end(): number {
    return this.#end;
  }

  /** Offset of the oldest stored byte. */
  get oldest(): number {
    return Math.max(this.#start, this.#end - this.#ring.byteLength);
  }

  /**
   * The offset at which a reader resumes: its own, or halfway through the retained bytes, so that it is not immediately overtaken again.
   */
  placeOf(offset: number): number {
    return offset >= this.oldest ? offset : Math.max(this.oldest, this.#end - Math.floor(this.#most / 2));
  }

  append(bytes: Uint8Array): void {
    const kept = bytes.subarray(Math.max(0, bytes.byteLength - this.#most));
    this.#end += bytes.byteLength - kept.byteLength;
    this.#grow(kept.byteLength);
    const size = this.#ring.byteLength;
    const at = (this.#end - this.#start) % size;
    const first = kept.subarray(0, size - at);
    this.#ring.set(first, at);
    this.#ring.set(kept.subarray(first.byteLength), 0);
    this.#end += kept.byteLength;
  }

  /** A copy of at most `most` bytes from a stored offset; empty at the end. */
  read(offset: number, most: number): Uint8Array {
    if (offset < this.oldest || offset > this.#end) throw new RangeError(`offset ${offset} is not kept`);
    const size = this.#ring.byteLength;
    const at = (offset - this.#start) % size;
    return this.#ring.slice(at, at + Math.min(most, this.#end - offset, size - at));
  }

  /** Enlarges the ring until it has its full size; before that, no byte has been dropped. */
  #grow(more: number): void {
    const filled = this.#end - this.#start;
    const want = Math.min(filled + more, this.#most);
    if (want <= this.#ring.byteLength) return;
    let size = this.#ring.byteLength;
    while (size < want) size = Math.min(size * 2, this.#most);
    const grown = new Uint8Array(size);
    // Below its full size the ring has never wrapped: it always grew first.
    grown.set(this.#ring.subarray(0, Math.min(filled, this.#ring.byteLength)));
    this.#ring = grown;
  }
}
