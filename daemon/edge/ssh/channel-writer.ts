/**
 * Writes to a channel: one piece at a time over both of its streams, each when the client's window and the line have room. ssh2 1.17 keeps
 * a piece that waited for the window and sends it again when the other stream waits, ignores the line's own backpressure, and never
 * completes a write to a channel that was closed in the meantime.
 */
import type { Writable } from "node:stream";
import type { ServerChannel } from "ssh2";
import { loopTime, type OwnerName, Pieces } from "../../core/loop/index.ts";
import type { ConnectionBounds } from "./ssh2-bounds.ts";
import { forgetWaiting } from "./ssh2-internals.ts";

const PIECE_BYTES = 32 * 1024;

export class ChannelWriter {
  readonly #channel: ServerChannel;
  readonly #line: ConnectionBounds;
  readonly #pieces: Pieces;
  #isClosed = false;
  #closed: () => void = () => {};
  #turn: Promise<unknown> = Promise.resolve();

  constructor(channel: ServerChannel, line: ConnectionBounds, owner: OwnerName) {
    this.#pieces = new Pieces(loopTime, owner, "stream");
    this.#channel = channel;
    this.#line = line;
  }

  /** Resolves when the bytes are sent; false if the client is gone. */
  out(bytes: Uint8Array): Promise<boolean> {
    return this.#write(this.#channel, bytes);
  }

  err(bytes: Uint8Array): Promise<boolean> {
    return this.#write(this.#channel.stderr, bytes);
  }

  /** The client is gone. */
  close(): void {
    this.#isClosed = true;
    this.#closed();
  }

  #write(to: Writable, bytes: Uint8Array): Promise<boolean> {
    const turn = this.#turn.then(async () => {
      for (let at = 0; at < bytes.byteLength && !this.#isClosed; at += PIECE_BYTES) {
        await this.#pieces.next();
        await this.#put(to, bytes.subarray(at, at + PIECE_BYTES));
      }
      return !this.#isClosed;
    });
    this.#turn = turn;
    return turn;
  }

  async #put(to: Writable, bytes: Uint8Array): Promise<void> {
    while (this.#line.isFull && !this.#isClosed) await this.#orClosed((resolve) => void this.#line.moved.then(resolve));
    if (this.#isClosed) return;
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    await this.#orClosed((resolve) => void to.write(piece, () => resolve()));
    forgetWaiting(this.#channel);
  }

  /** Not a race with one promise, which would retain memory for every piece written. */
  async #orClosed(begin: (resolve: () => void) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed = resolve;
    begin(resolve);
    await promise;
  }
}
