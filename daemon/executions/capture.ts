/** Owns keeping a command's output: the first bytes up to a limit, and the count of all. */
export class Capture {
  readonly #limit: number;
  readonly #chunks: Uint8Array[] = [];
  #kept = 0;
  #total = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  take(bytes: Uint8Array): void {
    this.#total += bytes.byteLength;
    const room = this.#limit - this.#kept;
    if (room <= 0) return;
    const kept = bytes.byteLength <= room ? bytes : bytes.slice(0, room);
    this.#chunks.push(kept);
    this.#kept += kept.byteLength;
  }

  get totalBytes(): number {
    return this.#total;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}
