/**
 * Owns one of a command's output pipes, from the command to its stream.
 *
 * It is read only as fast as `send` resolves, so a command that floods blocks on its own pipe. A command's end is not
 * its pipe's end: what it left running in the background may hold the pipe for days. So once the command has ended,
 * the output is complete as soon as the pipe is empty; what others write later is read and dropped, which keeps them
 * from dying of a broken pipe.
 */
import * as libc from "../libc.ts";
import { log } from "../log.ts";

/** More than pipe and reader can hold at a command's end: who still writes by then is someone else. */
const MAX_LEFT_BYTES = 2 * 1024 * 1024;

export class Output {
  readonly #fd: number;
  readonly #send: (bytes: Uint8Array) => Promise<unknown>;
  readonly #complete = Promise.withResolvers<void>();
  #waiting = false;
  #dropping = false;
  #closed = false;
  #left = Number.POSITIVE_INFINITY;

  /** Takes over the read end of a pipe. */
  constructor(fd: number, send: (bytes: Uint8Array) => Promise<unknown>) {
    this.#fd = fd;
    this.#send = send;
    void this.#pump();
  }

  /** To be called when the command has ended; resolves when all that it wrote has been sent. */
  finish(): Promise<void> {
    this.#left = MAX_LEFT_BYTES;
    void this.#settle();
    return this.#complete.promise;
  }

  async #pump(): Promise<void> {
    try {
      const reader = Bun.file(this.#fd).stream().getReader();
      while (true) {
        this.#waiting = true;
        const { done, value } = await reader.read();
        this.#waiting = false;
        if (done) return;
        if (!this.#dropping) await this.#send(value);
        this.#left -= value.byteLength;
        if (Number.isFinite(this.#left) && !this.#dropping) void this.#settle();
      }
    } catch (error) {
      log("output", error);
    } finally {
      this.#complete.resolve();
      this.#closed = true;
      libc.close(this.#fd);
    }
  }

  /** One turn later, what the reader had taken from the pipe is with us: then waiting on an empty pipe is the end. */
  async #settle(): Promise<void> {
    await new Promise(setImmediate);
    if (this.#closed) return;
    if (this.#left > 0 && !(this.#waiting && libc.unreadBytes(this.#fd) === 0)) return;
    this.#dropping = true;
    this.#complete.resolve();
  }
}
