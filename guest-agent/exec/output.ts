/**
 * Owns one of a command's output pipes, from the command to its stream.
 *
 *   not looked at ──follow()──▶ read as it comes ──┐
 *         └──────────────finish()──────────────────┴─▶ complete ─▶ what others still write is dropped
 *
 * Most commands end at once, and a reader that waits costs more than they do: theirs is read when they have ended.
 * It is read only as fast as `send` resolves, so a command that floods blocks on its own pipe. A command's end is not
 * its pipe's end: what it left running in the background may hold the pipe for days. So once the command has ended,
 * the output is complete as soon as the pipe is empty; what others write later is read and dropped, which keeps them
 * from dying of a broken pipe.
 */
import { readSync } from "node:fs";
import * as libc from "../libc.ts";
import { log } from "../log.ts";

/** More than pipe and reader can hold at a command's end: who still writes by then is someone else. */
const MAX_LEFT_BYTES = 2 * 1024 * 1024;
const READ_BYTES = 256 * 1024;

export class Output {
  readonly #fd: number;
  readonly #send: (bytes: Uint8Array) => Promise<unknown>;
  readonly #complete = Promise.withResolvers<void>();
  #followed = false;
  #waiting = false;
  #dropping = false;
  #closed = false;
  #left = Number.POSITIVE_INFINITY;

  /** Takes over the read end of a pipe. */
  constructor(fd: number, send: (bytes: Uint8Array) => Promise<unknown>) {
    this.#fd = fd;
    this.#send = send;
  }

  /** Reads it as it comes from now on. */
  follow(): void {
    if (this.#followed) return;
    this.#followed = true;
    void this.#pump();
  }

  /** To be called when the command has ended; resolves when all that it wrote has been sent. */
  finish(): Promise<void> {
    this.#left = MAX_LEFT_BYTES;
    void (this.#followed ? this.#settle() : this.#take());
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
      this.#close();
    }
  }

  /** All that is in the pipe. */
  async #take(): Promise<void> {
    try {
      for (let state = libc.pipeState(this.#fd); state !== "ended"; state = libc.pipeState(this.#fd)) {
        if (state === "open" || this.#left <= 0) return this.#drop();
        const bytes = readNow(this.#fd);
        this.#left -= bytes.byteLength;
        await this.#send(bytes);
      }
    } catch (error) {
      log("output", error);
    }
    this.#close();
  }

  /** What others write from now on keeps them from dying of a broken pipe, and is nobody's. */
  #drop(): void {
    this.#dropping = true;
    this.#complete.resolve();
    this.follow();
  }

  #close(): void {
    this.#complete.resolve();
    this.#closed = true;
    libc.close(this.#fd);
  }

  /** One turn later, what the reader had taken from the pipe is with us: then waiting on an empty pipe is the end. */
  async #settle(): Promise<void> {
    await new Promise(setImmediate);
    if (this.#closed) return;
    if (this.#left > 0 && !(this.#waiting && libc.unreadBytes(this.#fd) === 0)) return;
    this.#drop();
  }
}

/** What a pipe has, or nothing: root in the guest may have opened it too, and taken it since that was asked. */
function readNow(fd: number): Uint8Array {
  libc.setNonBlocking(fd);
  const bytes = Buffer.allocUnsafeSlow(Math.min(libc.unreadBytes(fd), READ_BYTES));
  try {
    return bytes.subarray(0, readSync(fd, bytes));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return bytes.subarray(0, 0);
    throw error;
  }
}
