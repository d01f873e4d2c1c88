/**
 * The method `file_watch`. A watch outlives its streams for a while, with its latest changes, so that a reader with a broken connection
 * continues after the last change that it has.
 *
 *   watched ──no reader──▶ kept for WATCH_KEPT_MS ──▶ forgotten
 *      ▲                         │
 *      └──────── a reader ───────┘
 */
import { randomBytes } from "node:crypto";
import { type FileChange, type FileWatching, WATCH_KEPT_MS } from "../../shared/agent-protocol/files.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { InvalidRequest, wholeNumber } from "../exec/request.ts";
import { FileRefusal } from "./file-error.ts";
import { type Change, Inotify } from "./inotify.ts";
import { parsePath } from "./path.ts";

const MAX_WATCHES = 32;
const MAX_CHANGES = 8192;
const MAX_CHANGE_BYTES = 2 * 1024 * 1024;

export class Watches {
  readonly #watches = new Map<string, Watch>();

  async watch(stream: Stream, request: object): Promise<void> {
    const { path, recursive, watch_id, after } = request as Record<string, unknown>;
    const since = wholeNumber("after", after);
    const watch =
      watch_id === null ? await this.#begin(parsePath(path), recursive === true) : this.#known(watch_id, since);
    const message: FileWatching = { type: "watching", watch_id: watch.id };
    stream.say(message);
    await watch.follow(stream, since);
  }

  #known(id: unknown, after: number): Watch {
    if (typeof id !== "string") throw new InvalidRequest("watch_id must be text or null");
    const watch = this.#watches.get(id);
    if (watch?.has(after)) return watch;
    throw new FileRefusal(StreamErrorCode.history_gone, "the watch is no longer kept");
  }

  async #begin(path: Buffer, recursive: boolean): Promise<Watch> {
    if (this.#watches.size >= MAX_WATCHES) {
      throw new FileRefusal(StreamErrorCode.too_many_watches, `${MAX_WATCHES} watches are open`);
    }
    const watch = new Watch(() => this.#watches.delete(watch.id));
    this.#watches.set(watch.id, watch);
    try {
      await watch.begin(path, recursive);
    } catch (error) {
      this.#watches.delete(watch.id);
      throw error;
    }
    return watch;
  }
}

class Watch {
  readonly id = randomBytes(9).toString("base64url");
  readonly #forget: () => void;
  #inotify: Inotify | null = null;
  #changes: { seq: number; line: string }[] = [];
  #bytes = 0;
  #seq = 0;
  #readers = 0;
  #isOver = false;
  #more = Promise.withResolvers<void>();
  #keeping: Timer | undefined;

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  async begin(path: Buffer, recursive: boolean): Promise<void> {
    this.#inotify = await Inotify.begin(path, recursive, {
      changes: (changes) => this.#add(changes),
      end: () => {
        this.#isOver = true;
        this.#wake();
      },
    });
  }

  /** Whether the changes after `after` are still stored. */
  has(after: number): boolean {
    return after <= this.#seq && after >= (this.#changes[0]?.seq ?? this.#seq + 1) - 1;
  }

  /** Sends changes as they occur, until the stream or the watched root ends. */
  async follow(stream: Stream, after: number): Promise<void> {
    clearTimeout(this.#keeping);
    this.#readers++;
    const end = () => this.#wake();
    stream.finished.then(end, end);
    let known = after;
    try {
      while (!stream.ended) {
        if (!this.has(known)) return stream.fail(StreamErrorCode.history_gone, "the reader is too slow");
        const lines = this.#changes.filter(({ seq }) => seq > known);
        if (lines.length > 0) {
          known = lines.at(-1)?.seq ?? known;
          if (!(await stream.write(Channel.output, Buffer.from(lines.map(({ line }) => line).join(""))))) return;
        } else if (this.#isOver) {
          stream.endChannel(Channel.output);
          stream.finish(null);
        } else await this.#more.promise;
      }
    } finally {
      this.#readers--;
      if (this.#readers === 0) this.#keeping = setTimeout(() => this.#close(), WATCH_KEPT_MS);
    }
  }

  #add(changes: readonly Change[]): void {
    for (const change of changes) {
      const whole: FileChange = { seq: ++this.#seq, ...change };
      const line = `${JSON.stringify(whole)}\n`;
      this.#changes.push({ seq: whole.seq, line });
      this.#bytes += line.length;
    }
    let drop = 0;
    while (this.#changes.length - drop > MAX_CHANGES || this.#bytes > MAX_CHANGE_BYTES) {
      this.#bytes -= this.#changes[drop++]?.line.length ?? 0;
    }
    this.#changes.splice(0, drop);
    this.#wake();
  }

  #wake(): void {
    this.#more.resolve();
    this.#more = Promise.withResolvers<void>();
  }

  #close(): void {
    this.#inotify?.close();
    this.#forget();
  }
}
