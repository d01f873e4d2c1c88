/** Pulling reader of a connection's bytes, with backpressure, and a charge for each read. */
import { ByteQueue } from "./byte-queue.ts";
import { BadMessage } from "./http1/bad-message.ts";

/** Charges this number of reads; returns a promise if the reader has to wait. */
export type Pay = (reads: number) => Promise<void> | null;

/** Reads that are charged together: reading the clock costs more than most reads. */
const READS_TOGETHER = 64;

export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #pay: Pay;
  #unpaid = 0;
  /** Bytes that have arrived and are unread. */
  readonly queue = new ByteQueue();

  constructor(source: AsyncIterable<Uint8Array>, pay: Pay = () => null) {
    this.#source = source[Symbol.asyncIterator]();
    this.#pay = pay;
  }

  /** The next bytes, at most `most`; null at the end. */
  async some(most: number): Promise<Uint8Array | null> {
    await this.charge();
    if (this.queue.byteLength === 0 && !(await this.more())) return null;
    return this.queue.take(most);
  }

  /** Exactly `count` bytes, a small number. Throws BadMessage. */
  async exactly(count: number): Promise<Uint8Array> {
    await this.charge();
    while (this.queue.byteLength < count) {
      if (!(await this.more())) throw new BadMessage("the connection ended in the middle of a message");
    }
    return this.queue.take(count);
  }

  /** Limits a peer that sends every byte as a line, a chunk or a message: it would take all CPU time. */
  charge(): Promise<void> | null {
    if (++this.#unpaid < READS_TOGETHER) return null;
    this.#unpaid = 0;
    return this.#pay(READS_TOGETHER);
  }

  /** Waits for more bytes in the queue; false at the end. */
  async more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    this.queue.push(value);
    return true;
  }
}
