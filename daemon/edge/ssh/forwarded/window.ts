/**
 * Flow control of a stream between two hosts: at most one window of bytes in transit, until the peer grants credit for bytes read. So a
 * channel that is not read delays no other channel, and no messages about it.
 */

export const WINDOW_BYTES = 256 * 1024;
const PIECE_BYTES = 32 * 1024;
/** Overhead that is counted for each piece, which may be a few bytes. */
const BESIDE_BYTES = 128;

const costOf = (bytes: Uint8Array) => bytes.byteLength + BESIDE_BYTES;

/** The end that sends. */
export class Outlet {
  readonly #send: (bytes: Uint8Array) => Promise<void>;
  #left = WINDOW_BYTES;
  #room: PromiseWithResolvers<void> | null = null;
  #isClosed = false;

  constructor(send: (bytes: Uint8Array) => Promise<void>) {
    this.#send = send;
  }

  /** Resolves when they are sent; false if they are no longer read. One call at a time. */
  async write(bytes: Uint8Array): Promise<boolean> {
    for (let at = 0; at < bytes.byteLength && !this.#isClosed; ) {
      if (this.#left <= BESIDE_BYTES) {
        this.#room = Promise.withResolvers();
        await this.#room.promise;
        continue;
      }
      const piece = bytes.subarray(at, at + Math.min(PIECE_BYTES, this.#left - BESIDE_BYTES));
      this.#left -= costOf(piece);
      await this.#send(piece);
      at += piece.byteLength;
    }
    return !this.#isClosed;
  }

  taken(bytes: number): void {
    if (!Number.isSafeInteger(bytes) || bytes <= 0) return;
    this.#left = Math.min(WINDOW_BYTES, this.#left + bytes);
    this.#room?.resolve();
  }

  close(): void {
    this.#isClosed = true;
    this.#room?.resolve();
  }
}

/** The end that gets. */
export class Inlet implements AsyncIterable<Uint8Array> {
  readonly #taken: (bytes: number) => void;
  readonly #came: Uint8Array[] = [];
  #untaken = 0;
  #more: PromiseWithResolvers<void> | null = null;
  #end: { error: unknown } | null = null;

  constructor(taken: (bytes: number) => void) {
    this.#taken = taken;
  }

  /** False: the bytes exceed the window. */
  push(bytes: Uint8Array): boolean {
    if (this.#end) return true;
    this.#untaken += costOf(bytes);
    if (this.#untaken > WINDOW_BYTES) return false;
    this.#came.push(bytes);
    this.#more?.resolve();
    return true;
  }

  /** End of the stream; an error is thrown after the received bytes were read. */
  end(error: unknown = null): void {
    this.#end ??= { error };
    this.#more?.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = this.#came.shift();
      if (bytes) {
        yield bytes;
        this.#untaken -= costOf(bytes);
        this.#taken(costOf(bytes));
      } else if (this.#end) {
        if (this.#end.error !== null) throw this.#end.error;
        return;
      } else {
        this.#more = Promise.withResolvers();
        await this.#more.promise;
      }
    }
  }
}
