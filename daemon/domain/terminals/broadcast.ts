/**
 * Output of one terminal for all its watchers: one subscription in the guest, a ring buffer of the last bytes, and a position in it for
 * each watcher. There are no queues per watcher: a slow watcher skips to the oldest retained byte.
 *
 *     following ──the connection is lost──▶ reaching the guest ──▶ following
 *         └─ exit, or the guest is gone ──▶ over
 */
import { HISTORY_BYTES, History } from "../../../shared/agent-protocol/history.ts";
import { errorEvent } from "../../core/call/error-event.ts";
import type { StreamEvent } from "../../core/call/operation.ts";
import { isLinkLost } from "../../host/guest-link/answer.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { type WatchedOutput, type WatchedTerminal, watchTerminal } from "../../host/guest-link/terminal.ts";
import type { Writer } from "./writers.ts";

const PIECE_BYTES = 32 * 1024;
/** Maximum of sizes stored with their offsets; the oldest are evicted. */
const MAX_SIZES = 256;

interface Size {
  offset: number;
  rows: number;
  cols: number;
}

export interface BroadcastDeps {
  terminal_id: string;
  /** Called again after a loss of the connection. Throws ServiceError. */
  reach(over: AbortSignal): Promise<GuestLink>;
  /** Maps the guest's refusals. */
  asError(error: unknown): unknown;
  typist(): Writer | null;
}

export class Broadcast {
  readonly #deps: BroadcastDeps;
  readonly #stopped = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  #watched: WatchedTerminal | null = null;
  #history = new History(HISTORY_BYTES);
  #sizes: Size[] = [];
  #last: StreamEvent | null = null;
  /** Wakes the watchers. */
  #moved = Promise.withResolvers<void>();

  private constructor(deps: BroadcastDeps) {
    this.#deps = deps;
  }

  /** Throws the guest's refusal, mapped. */
  static async begin(deps: BroadcastDeps, link: GuestLink): Promise<Broadcast> {
    const broadcast = new Broadcast(deps);
    await broadcast.#follow(link, null);
    void broadcast.#goOn();
    return broadcast;
  }

  /** Resolves once no further output will be shown. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Offset after the newest byte of the history. */
  get end(): number {
    return this.#history.end;
  }

  /** Stops following; the guest's terminal continues. A repeated call does nothing. */
  stop(): void {
    this.#stopped.abort();
    this.#watched?.stop();
    this.#finish(errorEvent(null));
  }

  /** Wakes the watchers, for example after the typist has changed. */
  wake(): void {
    const moved = this.#moved;
    this.#moved = Promise.withResolvers<void>();
    moved.resolve();
  }

  /** All output from an offset on. Never throws; `signal` ends it, with an error if its reason is a ServiceError. */
  async *watch(after: number, signal: AbortSignal): AsyncGenerator<readonly StreamEvent[]> {
    const wake = () => this.wake();
    signal.addEventListener("abort", wake, { once: true });
    try {
      let at = Math.max(after, this.#history.oldest);
      let size = this.#sizeAt(at);
      let typist = this.#deps.typist();
      yield [{ id: at, data: { type: "watching", offset: at, ...screenOf(size), gap: at - after, typist } }];
      while (!signal.aborted) {
        const events: StreamEvent[] = [];
        const typing = this.#deps.typist();
        if (typing !== typist) events.push({ id: null, data: { type: "typist", typist: typing } });
        typist = typing;
        const place = this.#history.placeOf(at);
        if (place > at) events.push({ id: place, data: { type: "lost", offset: place, gap: place - at } });
        at = place;
        const sized = this.#sizeAt(at);
        if (!isSame(sized, size)) events.push({ id: null, data: { type: "resized", ...screenOf(sized) } });
        size = sized;
        const bytes = at < this.end ? this.#history.read(at, this.#pieceAt(at)) : new Uint8Array(0);
        if (bytes.byteLength > 0) {
          events.push({ id: at + bytes.byteLength, data: { type: "output", offset: at }, data_b64: bytes });
          at += bytes.byteLength;
        }
        if (events.length > 0) yield events;
        else if (this.#last) return yield [this.#last];
        else await this.#moved.promise;
      }
      yield [errorEvent(signal.reason)];
    } finally {
      signal.removeEventListener("abort", wake);
    }
  }

  async #follow(link: GuestLink, since: number | null): Promise<void> {
    const { terminal_id } = this.#deps;
    const watched = await watchTerminal(link, { terminal_id, since }, (shown) => this.#take(shown)).catch((error) => {
      throw isLinkLost(error) ? error : this.#deps.asError(error);
    });
    this.#watched = watched;
    if (this.#stopped.signal.aborted) watched.stop();
  }

  /** Follows the terminal across reconnections until its end. Never rejects. */
  async #goOn(): Promise<void> {
    const { signal } = this.#stopped;
    for (let watched = this.#watched; !signal.aborted; ) {
      try {
        if (watched) {
          const { exit_code, signal } = await watched.ended;
          return this.#finish({ id: null, data: { type: "exit", exit_code, signal } });
        }
        await this.#follow(await this.#deps.reach(signal), this.end);
        watched = this.#watched;
      } catch (error) {
        if (!isLinkLost(error)) return this.#finish(errorEvent(watched ? this.#deps.asError(error) : error));
        watched = null;
      }
    }
  }

  #finish(event: StreamEvent): void {
    this.#last ??= event;
    this.#over.resolve();
    this.wake();
  }

  #take(shown: WatchedOutput): void {
    if (shown.type === "bytes") this.#history.append(shown.bytes);
    // Bytes before a gap are dropped.
    else if (shown.type === "from" && shown.offset !== this.end) {
      this.#history = new History(HISTORY_BYTES, shown.offset);
    } else if (shown.type === "size") this.#resize(shown);
    this.wake();
  }

  #resize({ rows, cols }: { rows: number; cols: number }): void {
    this.#sizes.push({ offset: this.end, rows, cols });
    const { oldest } = this.#history;
    while (this.#sizes.length > MAX_SIZES || Number(this.#sizes[1]?.offset) <= oldest) this.#sizes.shift();
  }

  /** The size for which the bytes at an offset were written; if it is no longer known, the oldest known size. */
  #sizeAt(offset: number): Size | undefined {
    return this.#sizes.findLast((size) => size.offset <= offset) ?? this.#sizes[0];
  }

  /** Number of bytes for one event: up to the next size. */
  #pieceAt(at: number): number {
    const next = this.#sizes.find(({ offset }) => offset > at);
    return Math.min(PIECE_BYTES, next ? next.offset - at : PIECE_BYTES);
  }
}

function screenOf(size: Size | undefined): { rows: number; cols: number } {
  return { rows: size?.rows ?? 0, cols: size?.cols ?? 0 };
}

function isSame(one: Size | undefined, other: Size | undefined): boolean {
  return one?.rows === other?.rows && one?.cols === other?.cols;
}
