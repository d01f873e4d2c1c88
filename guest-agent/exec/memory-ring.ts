/**
 * Owns the newest bytes of an output in memory: a ring that is used again and again, since fresh memory costs a guest more than
 * what is done with it. It is as small as what it has to hold, until that is its full size.
 */
const FIRST_BYTES = 4096;

export class MemoryRing {
  readonly capacity: number;
  #bytes = Buffer.alloc(0);

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Has room for so many bytes after an offset where those before have ended, less than its capacity at once. */
  makeRoom(offset: number, bytes: number): void {
    this.#grow(offset, offset + bytes);
  }

  /** Writes where there is room. */
  write(bytes: Uint8Array, offset: number): void {
    const at = offset % this.#bytes.byteLength;
    const first = bytes.subarray(0, this.#bytes.byteLength - at);
    this.#bytes.set(first, at);
    this.#bytes.set(bytes.subarray(first.byteLength), 0);
  }

  /** The places of so many bytes from an offset on, to be written there, or read. */
  places(offset: number, bytes: number): Uint8Array[] {
    const first = this.at(offset, bytes);
    if (first.byteLength === bytes) return [first];
    return [first, this.#bytes.subarray(0, bytes - first.byteLength)];
  }

  /** What lies together from an offset on, at most so much; changes when it is overwritten. */
  at(offset: number, most: number): Buffer {
    const at = offset % this.#bytes.byteLength;
    return this.#bytes.subarray(at, at + most);
  }

  /** Below its full size it has never wrapped: it grows before it would. */
  #grow(end: number, wanted: number): void {
    const { byteLength } = this.#bytes;
    if (wanted <= byteLength || byteLength === this.capacity) return;
    const grown = Buffer.allocUnsafeSlow(Math.min(this.capacity, Math.max(FIRST_BYTES, byteLength * 2, wanted)));
    grown.set(this.#bytes.subarray(0, end));
    this.#bytes = grown;
  }
}
