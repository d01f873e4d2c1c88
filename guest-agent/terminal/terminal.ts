/**
 * One terminal: its command, its history, and the attached client.
 *
 *     running ──the command exits, its last bytes are read──▶ ended: exited
 *        ├─ detached for too long, hangUp() ──▶ HUP ──5 s──▶ KILL to the leader ──▶ ended: detached, closed
 *        └─ end() ──▶ HUP ──5 s──▶ KILL, to all processes started in it ──▶ ended: closed
 *
 * When a shell exits, its background processes keep running, as after any kind of login; only end() ends them too.
 *
 * Without an attached client the command keeps running and the history drops its oldest bytes. With an attached client the master is read
 * only as fast as the client reads, so that the command itself blocks. Watchers are not attached: nothing waits for them.
 */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { History } from "../../shared/agent-protocol/history.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import {
  Channel,
  StreamErrorCode,
  type TerminalAttached,
  type TerminalAttachRequest,
  type TerminalEnd,
  type TerminalResized,
  type TerminalSkipped,
  type TerminalState,
  type TerminalWatching,
  type TerminalWatchRequest,
} from "../../shared/agent-protocol/messages.ts";
import { signalGroup, signalName, signalOf } from "../exec/process-group.ts";
import type { Refusal } from "../exec/program.ts";
import * as libc from "../libc.ts";
import { log } from "../log.ts";
import { resizeOf } from "./request.ts";
import { Session } from "./session.ts";
import type { TerminalCommand, TerminalLine } from "./spawn.ts";

/** A shell without an attached client is ended after this time, unless the request had another one. */
const DETACHED_LIFE_MS = 10 * 60_000;
/** Maximum lag of a reader, beyond which the command waits for the reader. */
const MAX_BEHIND_BYTES = 64 * 1024;
const PIECE_BYTES = 32 * 1024;
/** Retry interval while a command does not read its input. */
const FULL_RETRY_MS = 10;
/**
 * After its command's exit, a terminal that is found empty this often in a row counts as drained; the kernel passes written bytes on within
 * a tick.
 */
const EMPTY_LOOKS = 3;
const LOOK_EVERY_MS = 20;
const SHOWN_CHARACTERS = 256;

export class Terminal {
  readonly id: string;
  readonly startedAt = Date.now();
  readonly #line: TerminalLine;
  readonly #detachedLifeMs: number;
  readonly #history = new History();
  readonly #ended = Promise.withResolvers<TerminalEnd>();
  #end: TerminalEnd | null = null;
  #rows: number;
  #cols: number;
  #pid = 0;
  #session: Session | null = null;
  /** Why it is being ended. */
  #ending: "detached" | "closed" | null = null;
  #master: number | null = null;
  #attached: { stream: Stream; at: number } | null = null;
  #life: Timer | undefined;
  /** Whether bytes that were read wait for the attached client. */
  #isHeld = false;
  #typing: Promise<unknown> = Promise.resolve();
  /** Wakes waiters: for bytes, or for a reader that is behind. */
  #moved = Promise.withResolvers<void>();

  constructor(
    id: string,
    line: TerminalLine,
    command: TerminalCommand | Refusal,
    detachedLifeMs: number = DETACHED_LIFE_MS,
  ) {
    this.id = id;
    this.#detachedLifeMs = detachedLifeMs;
    this.#line = line;
    this.#rows = line.rows;
    this.#cols = line.cols;
    if ("reason" in command) {
      this.#history.append(new TextEncoder().encode(`roomd: ${line.argv[0]}: ${command.reason}\r\n`));
      line.cgroup?.release();
      this.#finish({ exit_code: command.exitCode, signal: null });
      return;
    }
    this.#pid = command.child.pid;
    this.#session = new Session(this.#pid, line.cgroup);
    this.#master = command.master;
    this.#detach(null);
    void this.#run(command);
  }

  get pid(): number {
    return this.#pid;
  }

  get ended(): Promise<TerminalEnd> {
    return this.#ended.promise;
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  get state(): TerminalState {
    return {
      terminal_id: this.id,
      command: this.#line.argv.join(" ").slice(0, SHOWN_CHARACTERS),
      user: this.#line.user.name,
      rows: this.#rows,
      cols: this.#cols,
      started_at_ms: this.startedAt,
      attached: this.#attached !== null,
      offset: this.#history.end,
      end: this.#end,
    };
  }

  /** Sends the terminal's output to a stream from an offset on, until the terminal or the stream ends. */
  async attach(stream: Stream, { since, takeover }: TerminalAttachRequest): Promise<void> {
    const at = this.#placeOf(stream, since);
    if (at === null) return;
    if (this.#attached && !takeover) return stream.fail(StreamErrorCode.terminal_in_use, "another client is attached");
    this.#attached?.stream.fail(StreamErrorCode.taken_over, "another client has taken over");
    const own = { stream, at };
    this.#attached = own;
    clearTimeout(this.#life);
    this.#wake();
    const attached: TerminalAttached = { type: "attached", offset: own.at, rows: this.#rows, cols: this.#cols };
    stream.say(attached);
    stream.hear((event) => this.#hear(event));
    void this.#type(stream);
    stream.finished.catch(() => {}).finally(() => this.#detach(own));
    await this.#show(own);
  }

  /** Shows the terminal on a stream to a watcher, which is not attached and has no effect on the terminal. */
  async watch(stream: Stream, { since }: TerminalWatchRequest): Promise<void> {
    const at = this.#placeOf(stream, since);
    if (at === null) return;
    const watching: TerminalWatching = { type: "watching", offset: at, rows: this.#rows, cols: this.#cols };
    stream.say(watching);
    stream.finished.catch(() => {}).finally(() => this.#wake());
    await this.#showBeside(stream, watching);
  }

  /** Hangs up on the terminal; resolves once the terminal has ended. */
  async hangUp(): Promise<TerminalEnd> {
    this.#hangUp("closed");
    return await this.ended;
  }

  /** Ends every process that was ever started in the terminal, even if the terminal itself has ended; resolves when this is complete. */
  async end(): Promise<TerminalEnd> {
    this.#ending ??= "closed";
    await this.#session?.end();
    return await this.ended;
  }

  async #run({ child, master, slave }: TerminalCommand): Promise<void> {
    // At the leader's exit the kernel hangs up on all other processes. Our slave end stays open until then, so that a command may close its
    // terminal and open it again.
    const exited = child.exited.finally(() => {
      this.#session?.leaderEnded();
      libc.close(slave);
    });
    const reader = Bun.file(master).stream().getReader();
    const read = this.#read(() => reader.read());
    await exited;
    // Background processes may still hold the terminal open; after the hangup they write no more.
    await Promise.race([read, this.#drained(master)]);
    await reader.cancel().catch(() => {});
    await read;
    clearTimeout(this.#life);
    this.#master = null;
    libc.close(master);
    this.#finish({
      exit_code: child.signalCode === null ? child.exitCode : null,
      signal: signalName(child.signalCode),
    });
  }

  #finish(how: Pick<TerminalEnd, "exit_code" | "signal">): void {
    const end: TerminalEnd = { ...how, ended_at_ms: Date.now(), reason: this.#ending ?? "exited" };
    this.#end = end;
    this.#ended.resolve(end);
    this.#wake();
  }

  /** Reads the master into the history at the pace of the attached client; ends when the last slave was closed (EIO). */
  async #read(next: () => Promise<{ done: boolean; value?: Uint8Array | undefined }>): Promise<void> {
    try {
      for (;;) {
        const { value } = await next();
        if (!value) return;
        // Before the append, not after it: appended bytes may push out bytes that the attached client has yet to get.
        this.#isHeld = true;
        while (this.#attached && this.#history.end - this.#attached.at > MAX_BEHIND_BYTES) await this.#moved.promise;
        this.#isHeld = false;
        this.#history.append(value);
        this.#wake();
      }
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EIO")) log("terminal", error);
    }
  }

  /** Resolves once no bytes are left to read after the command's exit. */
  async #drained(master: number): Promise<void> {
    for (let empty = 0; empty < EMPTY_LOOKS; ) {
      await sleep(LOOK_EVERY_MS);
      empty = this.#isHeld || libc.isReadable(master) ? 0 : empty + 1;
    }
  }

  async #show(own: { stream: Stream; at: number }): Promise<void> {
    while (this.#attached === own) {
      // The history is never shorter than its reader's lag: it waits for the reader.
      const bytes = this.#history.read(own.at, PIECE_BYTES);
      if (bytes.byteLength > 0) {
        if (!(await own.stream.write(Channel.stdout, bytes))) return;
        own.at += bytes.byteLength;
        this.#wake();
      } else if (this.#end) {
        own.stream.endChannel(Channel.stdout);
        own.stream.finish(this.#end);
        return;
      } else {
        await this.#moved.promise;
      }
    }
  }

  /** Watchers get only the latest size, however often it has changed. */
  async #showBeside(stream: Stream, { offset, rows, cols }: TerminalWatching): Promise<void> {
    let at = offset;
    let reportedSize = { rows, cols };
    while (!stream.ended) {
      const to = this.#history.placeOf(at);
      if (to > at) {
        const skipped: TerminalSkipped = { type: "skipped", offset: at, to };
        stream.say(skipped);
        at = to;
      }
      if (reportedSize.rows !== this.#rows || reportedSize.cols !== this.#cols) {
        reportedSize = { rows: this.#rows, cols: this.#cols };
        const resized: TerminalResized = { type: "resized", offset: at, ...reportedSize };
        stream.say(resized);
      }
      const bytes = this.#history.read(at, PIECE_BYTES);
      if (bytes.byteLength > 0) {
        if (!(await stream.write(Channel.stdout, bytes))) return;
        at += bytes.byteLength;
      } else if (this.#end) {
        stream.endChannel(Channel.stdout);
        return stream.finish(this.#end);
      } else {
        await this.#moved.promise;
      }
    }
  }

  /** The offset at which a stream starts, or null if it was refused. */
  #placeOf(stream: Stream, since: number | null): number | null {
    const { oldest, end } = this.#history;
    if (since === null || since <= end) return Math.max(since ?? 0, oldest);
    stream.fail(StreamErrorCode.invalid_request, `since is ${since}, and the terminal is at ${end}`);
    return null;
  }

  /** Serialized: bytes that a client typed before it was disconnected come before those of the next client. */
  async #type(stream: Stream): Promise<void> {
    for await (const bytes of stream.read(Channel.stdin)) {
      this.#typing = this.#typing.then(() => this.#press(bytes));
      await this.#typing;
    }
  }

  /** Not by Bun's writer: once it exists for a terminal, Bun reads the terminal as if it were a file. */
  async #press(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength && this.#master !== null; ) {
      try {
        at += writeSync(this.#master, bytes, at);
      } catch (error) {
        // The input cannot be typed any more: the terminal has no reader.
        if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) return;
        await sleep(FULL_RETRY_MS);
      }
    }
  }

  #hear(event: unknown): void {
    if (this.#master === null) return;
    const size = resizeOf(event);
    if (size && libc.setWindowSize(this.#master, size.rows, size.cols)) {
      this.#rows = size.rows;
      this.#cols = size.cols;
      this.#wake();
    }
    const signal = signalOf(event);
    const group = signal === null ? null : libc.foregroundGroup(this.#master);
    if (signal !== null && group !== null) signalGroup(group, signal);
  }

  /** `own` is the client that has left; null starts the lifetime of a terminal without any client yet. */
  #detach(own: { stream: Stream } | null): void {
    if (this.#attached !== own) return;
    this.#attached = null;
    this.#wake();
    if (!this.#end) this.#life = setTimeout(() => this.#hangUp("detached"), this.#detachedLifeMs);
  }

  #hangUp(why: "detached" | "closed"): void {
    if (this.#end || this.#ending) return;
    this.#ending = why;
    void this.#session?.hangUp();
  }

  #wake(): void {
    const moved = this.#moved;
    this.#moved = Promise.withResolvers<void>();
    moved.resolve();
  }
}
