/**
 * One of a command's output pipes, from the command to its stream.
 *
 *     unread ──follow()──▶ read as bytes arrive ──┐
 *        └─────────finish()───────────────────────┴─▶ complete ─▶ later bytes of other writers are dropped
 *
 * Most commands exit quickly, and a waiting reader costs more than they do: their output is read after their exit. The pipe is read only as
 * fast as `take` resolves, so a command that floods its output blocks on its own pipe. A command's exit is not the end of its pipe:
 * background processes may hold the pipe open for days. So once the command has exited, the output is complete as soon as the pipe is
 * empty; later writes are read and dropped, so that the writers do not die of SIGPIPE.
 */
import * as libc from "../libc.ts";
import { log } from "../log.ts";
import type { Read } from "./kept-output.ts";
import { waitUntilReadable } from "./poll-pipes.ts";

/** More than the pipe can hold at a command's exit: any further bytes come from other writers. */
const MAX_LEFT_BYTES = 2 * 1024 * 1024;
/** Bytes per turn, after which other work gets its turn. */
const TURN_BYTES = 256 * 1024;
/** Buffer size for dropped bytes. */
const DROPPED_BYTES = 64 * 1024;
/** Delay before an empty pipe is polled: each wait for it costs as much as reading many pieces. */
const REST_MS = 1;

/** Takes at most `most` bytes. Resolves to the number taken, when more may follow. */
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

  /** Takes ownership of the read end of a pipe. */
  constructor(fd: number, take: Take) {
    this.#fd = fd;
    this.#take = take;
  }

  /** Starts reading output as it arrives. */
  follow(): void {
    if (this.#followed) return;
    this.#followed = true;
    void this.#pump();
  }

  /** Called when the command has ended; resolves when all that it wrote has been passed on. */
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

  /** Reads from the pipe, at most one turn's worth. */
  async #some(): Promise<void> {
    if (!this.#isRead) libc.setNonBlocking(this.#fd);
    this.#isRead = true;
    for (let left = TURN_BYTES; left > 0 && (this.#left > 0 || this.#dropping); ) {
      const unread = libc.unreadBytes(this.#fd);
      if (unread === 0 && left < TURN_BYTES) return;
      const taken = this.#dropping
        ? this.#read([Buffer.allocUnsafe(DROPPED_BYTES)])
        : unread && (await this.#take(unread, this.#read));
      // Root in the guest may have the pipe open too, and have read the bytes first.
      if (taken === 0) break;
      left -= taken;
      if (!this.#dropping) this.#left -= taken;
    }
    await new Promise(setImmediate);
  }

  /** Resolves when there may be more output. */
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

  /** From now on bytes are read only to spare their writers a SIGPIPE, and dropped. */
  #drop(): void {
    this.#dropping = true;
    this.#complete.resolve();
  }
}
