/** Reader of a guest server's bytes, with a limit on all buffered data. */

/** The server has sent less than it announced, or data that is not HTTP. */
export class BadAnswer extends Error {
  override name = "BadAnswer";
}

/** Charges this number of reads; returns a promise if the reader has to wait. */
export type Pay = (reads: number) => Promise<void> | null;

const LF = 10;
const CR = 13;
const EMPTY = new Uint8Array(0);
/** Reads that are charged together: reading the clock costs more than most reads. */
const READS_TOGETHER = 64;

export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #pay: Pay;
  #unpaid = 0;
  /** The bytes from `#from` to `#to` are unread. A consumer may still use those before. */
  #store: Uint8Array = EMPTY;
  #from = 0;
  #to = 0;
  /** Whether the reader has allocated the store, so that it may have free space. */
  #isOwn = false;

  constructor(source: AsyncIterable<Uint8Array>, pay: Pay = () => null) {
    this.#source = source[Symbol.asyncIterator]();
    this.#pay = pay;
  }

  /** Whether bytes are available without waiting. */
  get hasBytes(): boolean {
    return this.#from < this.#to;
  }

  /** Whether a line of at most `most` bytes is available without waiting. */
  hasLine(most: number): boolean {
    return this.#store.subarray(this.#from, Math.min(this.#to, this.#from + most)).includes(LF);
  }

  /** The next bytes, at most `most`; null at the end. */
  async some(most: number): Promise<Uint8Array | null> {
    await this.#count();
    if (this.#from === this.#to && !(await this.#more())) return null;
    const bytes = this.#store.subarray(this.#from, Math.min(this.#to, this.#from + most));
    this.#from += bytes.byteLength;
    return bytes;
  }

  /** Exactly `count` bytes, a small number. Throws BadAnswer. */
  async exactly(count: number): Promise<Uint8Array> {
    await this.#count();
    while (this.#to - this.#from < count) {
      if (!(await this.#more())) throw new BadAnswer("the server ended in the middle");
    }
    const bytes = this.#store.subarray(this.#from, this.#from + count);
    this.#from += count;
    return bytes;
  }

  /** A line without its end, as latin1; null at the end of the stream. Throws BadAnswer. */
  async line(most: number): Promise<string | null> {
    await this.#count();
    for (let looked = 0; ; ) {
      const rest = this.#store.subarray(this.#from, this.#to);
      const at = rest.indexOf(LF, looked);
      if (at !== -1 && at <= most) {
        const end = at > 0 && rest[at - 1] === CR ? at - 1 : at;
        this.#from += at + 1;
        return Buffer.from(rest.buffer, rest.byteOffset, end).toString("latin1");
      }
      if (at !== -1 || rest.byteLength > most) throw new BadAnswer(`a line of over ${most} bytes`);
      looked = rest.byteLength;
      if (!(await this.#more())) {
        if (looked === 0) return null;
        throw new BadAnswer("the server ended in the middle of a line");
      }
    }
  }

  /** Limits a server that sends every byte as a line, a chunk or a message: it would take all CPU time. */
  #count(): Promise<void> | null {
    if (++this.#unpaid < READS_TOGETHER) return null;
    this.#unpaid = 0;
    return this.#pay(READS_TOGETHER);
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    const kept = this.#to - this.#from;
    if (kept === 0) {
      [this.#store, this.#from, this.#to, this.#isOwn] = [value, 0, value.byteLength, false];
      return true;
    }
    if (!this.#isOwn || this.#to + value.byteLength > this.#store.byteLength) {
      // Twice the required size, so that bytes arriving singly are not copied each time.
      const larger = new Uint8Array(2 * (kept + value.byteLength));
      larger.set(this.#store.subarray(this.#from, this.#to));
      [this.#store, this.#from, this.#to, this.#isOwn] = [larger, 0, kept, true];
    }
    this.#store.set(value, this.#to);
    this.#to += value.byteLength;
    return true;
  }
}
