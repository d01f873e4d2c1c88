/**
 * Owns writing to a channel: one piece at a time over both of its streams, each when the client's window and its socket have
 * room. ssh2 1.17 keeps a piece that waited for the window and sends it again when the other stream waits, knows nothing of
 * the socket's own room, and never answers a write to a channel that was closed meanwhile.
 */
import type { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { ServerChannel } from "ssh2";

/** What may wait in the socket; a client that reads nothing costs no more. */
const MOST_UNSENT_BYTES = 256 * 1024;
const PIECE_BYTES = 32 * 1024;
const NOTHING_WAITS = { _chunk: undefined, _chunkcb: undefined, _chunkErr: undefined, _chunkcbErr: undefined };

export class ChannelWriter {
  readonly #channel: ServerChannel;
  readonly #socket: Socket;
  readonly #closed = Promise.withResolvers<void>();
  #isClosed = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(channel: ServerChannel, socket: Socket) {
    this.#channel = channel;
    this.#socket = socket;
    const close = () => {
      this.#isClosed = true;
      this.#closed.resolve();
      socket.off("close", close);
    };
    channel.once("close", close);
    socket.once("close", close);
  }

  /** Resolves once the bytes are on their way; false when there is nobody to take them any more. */
  out(bytes: Uint8Array): Promise<boolean> {
    return this.#write(this.#channel, bytes);
  }

  err(bytes: Uint8Array): Promise<boolean> {
    return this.#write(this.#channel.stderr, bytes);
  }

  #write(to: Writable, bytes: Uint8Array): Promise<boolean> {
    const turn = this.#turn.then(async () => {
      for (let at = 0; at < bytes.byteLength && !this.#isClosed; at += PIECE_BYTES) {
        await this.#put(to, bytes.subarray(at, at + PIECE_BYTES));
      }
      return !this.#isClosed;
    });
    this.#turn = turn;
    return turn;
  }

  async #put(to: Writable, bytes: Uint8Array): Promise<void> {
    await this.#room();
    if (this.#isClosed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    to.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), () => resolve());
    await Promise.race([promise, this.#closed.promise]);
    Object.assign(this.#channel, NOTHING_WAITS);
  }

  async #room(): Promise<void> {
    if (this.#socket.writableLength <= MOST_UNSENT_BYTES) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.once("drain", resolve);
    await Promise.race([promise, this.#closed.promise]);
    this.#socket.off("drain", resolve);
  }
}
