/**
 * Owns one of a command's output pipes, from the command to its stream.
 *
 *   not looked at ──follow()──▶ read as it comes ──┐
 *         └──────────────finish()──────────────────┴─▶ complete ─▶ what others still write is dropped
 *
 * Most commands end at once, and a reader that waits costs more than they do: theirs is read when they have ended.
 * It is read only as fast as `take` resolves, so a command that floods blocks on its own pipe. A command's end is not
 * its pipe's end: what it left running in the background may hold the pipe for days. So once the command has ended,
 * the output is complete as soon as the pipe is empty; what others write later is read and dropped, which keeps them
 * from dying of a broken pipe.
 */
import * as libc from "../libc.ts";
import { log } from "../log.ts";
import type { Read } from "./journal.ts";
import { waitUntilReadable } from "./readable.ts";

/** More than the pipe can hold at a command's end: who still writes by then is someone else. */
const MAX_LEFT_BYTES = 2 * 1024 * 1024;
/** After so much others have their turn. */
const TURN_BYTES = 256 * 1024;
/** Of what is dropped. */
const DROPPED_BYTES = 64 * 1024;
/** An empty pipe is left alone for so long first: each wait for it costs as much as reading many pieces. */
const REST_MS = 1;

/** Takes at most so many bytes. Resolves to how many it was, when more may follow. */
export type Take = (most: number, read: Read) => Promise<number>;

export class Output {
  readonly #fd: number;
  readonly #take: Take;
  readonly #read: Read = (places) => libc.readNow(this.#fd, places);
  readonly #complete = Promise.withResolvers<void>();
  #followed = false;
  #isRead = false;
  #dropping = false;
  #left = Number.POSITIVE_INFINITY;
  /** Ends a wait for more. */
  #look = () => {};

  /** Takes over the read end of a pipe. */
  constructor(fd: number, take: Take) {
    this.#fd = fd;
    this.#take = take;
  }

  /** Reads it as it comes from now on. */
  follow(): void {
    if (this.#followed) return;
    this.#followed = true;
    void this.#pump();
  }

  /** To be called when the command has ended; resolves when all that it wrote has been taken. */
  finish(): Promise<void> {
    this.#left = MAX_LEFT_BYTES;
    this.follow();
    this.#look();
    return this.#complete.promise;
  }

  get #isEnding(): boolean {
    return Number.isFinite(this.#left);
  }

  async #pump(): Promise<void> {
    try {
      for (let state = libc.pipeState(this.#fd); state !== "ended"; state = libc.pipeState(this.#fd)) {
        if (this.#left <= 0 || (state === "open" && this.#isEnding)) this.#drop();
        if (state === "open") await this.#more();
        else await this.#some();
      }
    } catch (error) {
      log("output", error);
    }
    this.#complete.resolve();
    libc.close(this.#fd);
  }

  /** Takes what the pipe has, a turn's worth at most. */
  async #some(): Promise<void> {
    if (!this.#isRead) libc.setNonBlocking(this.#fd);
    this.#isRead = true;
    for (let left = TURN_BYTES; left > 0 && (this.#left > 0 || this.#dropping); ) {
      const unread = libc.unreadBytes(this.#fd);
      if (unread === 0 && left < TURN_BYTES) return;
      const taken = this.#dropping
        ? this.#read([Buffer.allocUnsafe(DROPPED_BYTES)])
        : unread && (await this.#take(unread, this.#read));
      // Root in the guest may have it open too, and have read it first.
      if (taken === 0) break;
      left -= taken;
      if (!this.#dropping) this.#left -= taken;
    }
    await new Promise(setImmediate);
  }

  /** Resolves when there may be more. */
  async #more(): Promise<void> {
    if (this.#isRead && (this.#dropping || !this.#isEnding)) await this.#rest();
    if (libc.pipeState(this.#fd) !== "open" || (this.#isEnding && !this.#dropping)) return;
    const { over, stop } = waitUntilReadable(this.#fd);
    this.#look = stop;
    await over;
  }

  async #rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, REST_MS);
    this.#look = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** What others write from now on keeps them from dying of a broken pipe, and is nobody's. */
  #drop(): void {
    this.#dropping = true;
    this.#complete.resolve();
  }
}
