/** Captures a command's output: the first bytes up to a limit, and the total number of bytes. */
const FIRST_BYTES = 4096;

export class Capture {
  readonly #limit: number;
  /** A separate buffer, at most twice the size of its content: a piece costs its own bytes, however small pieces are. */
  #kept: Buffer = Buffer.alloc(0);
  #keptBytes = 0;
  #total = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  take(bytes: Uint8Array): void {
    this.#total += bytes.byteLength;
    const fresh = Math.min(bytes.byteLength, this.#limit - this.#keptBytes);
    if (fresh === 0) return;
    this.#makeRoom(this.#keptBytes + fresh);
    this.#kept.set(bytes.subarray(0, fresh), this.#keptBytes);
    this.#keptBytes += fresh;
  }

  get totalBytes(): number {
    return this.#total;
  }

  /** The bytes kept so far; a later `take` does not change them. */
  bytes(): Buffer {
    return this.#kept.subarray(0, this.#keptBytes);
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#kept.byteLength) return;
    const larger = Buffer.allocUnsafeSlow(
      Math.min(this.#limit, Math.max(bytes, this.#kept.byteLength * 2, FIRST_BYTES)),
    );
    larger.set(this.bytes());
    this.#kept = larger;
  }
}
