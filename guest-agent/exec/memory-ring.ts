/**
 * The newest bytes of an output in memory: a reused ring buffer, since fresh memory costs a guest more than the work done with it. It
 * starts small and grows with its contents up to its full size.
 */
const FIRST_BYTES = 4096;

export class MemoryRing {
  readonly capacity: number;
  #bytes = Buffer.alloc(0);

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Makes room for `bytes` bytes, fewer than its capacity, after an offset at which the previous ones end. */
  makeRoom(offset: number, bytes: number): void {
    this.#grow(offset, offset + bytes);
  }

  /** Writes into room made before. */
  write(bytes: Uint8Array, offset: number): void {
    const at = offset % this.#bytes.byteLength;
    const first = bytes.subarray(0, this.#bytes.byteLength - at);
    this.#bytes.set(first, at);
    this.#bytes.set(bytes.subarray(first.byteLength), 0);
  }

  /** The buffers for `bytes` bytes from an offset on, to be written or read. */
  places(offset: number, bytes: number): Uint8Array[] {
    const first = this.at(offset, bytes);
    if (first.byteLength === bytes) return [first];
    return [first, this.#bytes.subarray(0, bytes - first.byteLength)];
  }

  /** Contiguous bytes from an offset on, at most `most`; they change when the ring overwrites them. */
  at(offset: number, most: number): Buffer {
    const at = offset % this.#bytes.byteLength;
    return this.#bytes.subarray(at, at + most);
  }

  /** Enlarges the ring. A ring below its full size has never wrapped: it grows first. */
  #grow(end: number, requiredBytes: number): void {
    const { byteLength } = this.#bytes;
    if (requiredBytes <= byteLength || byteLength === this.capacity) return;
    const grown = Buffer.allocUnsafeSlow(Math.min(this.capacity, Math.max(FIRST_BYTES, byteLength * 2, requiredBytes)));
    grown.set(this.#bytes.subarray(0, end));
    this.#bytes = grown;
  }
}
