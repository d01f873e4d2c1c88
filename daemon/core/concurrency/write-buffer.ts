/**
 * Bytes that a client has sent and the guest has not read yet, such as terminal input: one buffer and one writer, so that memory is
 * proportional to bytes, however small the frames were.
 */

/** Size of one write; the count of pending bytes decreases after each. */
const PIECE_BYTES = 64 * 1024;
const LEAST_BYTES = 1024;

export class WriteBuffer {
  readonly #write: (bytes: Uint8Array) => Promise<void>;
  #buffer = new Uint8Array(0);
  /** Used bytes of the buffer. */
  #filled = 0;
  /** Bytes passed to the writer, but not yet written. */
  #underway = 0;

  constructor(write: (bytes: Uint8Array) => Promise<void>) {
    this.#write = write;
  }

  /** Bytes that wait. */
  get size(): number {
    return this.#filled + this.#underway;
  }

  add(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    const isIdle = this.size === 0;
    const needed = this.#filled + bytes.byteLength;
    if (needed > this.#buffer.byteLength) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#buffer.byteLength, LEAST_BYTES));
      larger.set(this.#buffer.subarray(0, this.#filled));
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#filled);
    this.#filled = needed;
    if (isIdle) void this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    while (this.#filled > 0) {
      const bytes = this.#buffer.subarray(0, this.#filled);
      this.#buffer = new Uint8Array(0);
      this.#filled = 0;
      this.#underway = bytes.byteLength;
      while (this.#underway > 0) {
        const at = bytes.byteLength - this.#underway;
        const piece = bytes.subarray(at, at + PIECE_BYTES);
        await this.#write(piece);
        this.#underway -= piece.byteLength;
      }
    }
  }
}
