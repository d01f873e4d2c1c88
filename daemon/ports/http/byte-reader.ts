/** Owns reading what comes from a guest's server piece by piece, with a bound on everything that is kept. */

/** The server has said less than it announced, or something else than HTTP. */
export class BadAnswer extends Error {
  override name = "BadAnswer";
}

const LF = 10;
const CR = 13;
const EMPTY = new Uint8Array(0);

export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = EMPTY;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** What there is next, `most` bytes at most; null at the end. */
  async some(most: number): Promise<Uint8Array | null> {
    if (this.#rest.byteLength === 0 && !(await this.#more())) return null;
    const bytes = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(bytes.byteLength);
    return bytes;
  }

  /** Exactly so many bytes. Throws BadAnswer. */
  async exactly(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let left = count; left > 0; ) {
      const bytes = await this.some(left);
      if (!bytes) throw new BadAnswer("the server ended in the middle");
      parts.push(bytes);
      left -= bytes.byteLength;
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  /** A line without its end, as latin1; null at the end of everything. Throws BadAnswer. */
  async line(most: number): Promise<string | null> {
    let looked = 0;
    for (;;) {
      const at = this.#rest.indexOf(LF, looked);
      if (at !== -1 && at <= most) {
        const end = at > 0 && this.#rest[at - 1] === CR ? at - 1 : at;
        const text = Buffer.from(this.#rest.subarray(0, end)).toString("latin1");
        this.#rest = this.#rest.subarray(at + 1);
        return text;
      }
      if (at !== -1 || this.#rest.byteLength > most) throw new BadAnswer(`a line of over ${most} bytes`);
      looked = this.#rest.byteLength;
      if (!(await this.#more())) {
        if (looked === 0) return null;
        throw new BadAnswer("the server ended in the middle of a line");
      }
    }
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    this.#rest = this.#rest.byteLength === 0 ? value : Buffer.concat([this.#rest, value]);
    return true;
  }
}
