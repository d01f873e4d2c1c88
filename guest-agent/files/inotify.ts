/**
 * Changes below one directory, or of one file, read from inotify(7). A recursive watch also follows directories that are created in or
 * moved into the watched directory, as long as they are on the same file system.
 */
import { readdir, stat } from "node:fs/promises";
import type { FileChange } from "../../shared/agent-protocol/files.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { waitUntilReadable } from "../exec/poll-pipes.ts";
import * as libc from "../libc.ts";
import { log } from "../log.ts";
import { entryIfThere } from "./entry.ts";
import { FileRefusal, isMissing } from "./file-error.ts";
import { joined, shownPath } from "./path.ts";

const MASK = {
  attrib: 0x4,
  modify: 0x2,
  moved_from: 0x40,
  moved_to: 0x80,
  create: 0x100,
  delete: 0x200,
  delete_self: 0x400,
  move_self: 0x800,
  overflow: 0x4000,
  ignored: 0x8000,
  dont_follow: 0x02000000,
  exclude_unlinked: 0x04000000,
  is_directory: 0x40000000,
} as const;
const WATCHED =
  MASK.attrib |
  MASK.modify |
  MASK.moved_from |
  MASK.moved_to |
  MASK.create |
  MASK.delete |
  MASK.delete_self |
  MASK.move_self |
  MASK.exclude_unlinked;
/** struct inotify_event: i32 wd, u32 mask, u32 cookie, u32 length of the name with its zeros. */
const HEADER_BYTES = 16;
const BUFFER_BYTES = 64 * 1024;
/** Maximum number of directories of one watch; each takes a kilobyte of kernel memory. */
const MAX_PLACES = 8192;

export type Change = Omit<FileChange, "seq">;

export class Inotify {
  readonly #fd = libc.openInotify();
  readonly #root: Buffer;
  readonly #recursive: boolean;
  readonly #device: bigint;
  readonly #onChanges: (changes: Change[]) => void;
  readonly #onEnd: () => void;
  readonly #places = new Map<number, Buffer>();
  /** Entries reported because their directory is new: the kernel may report them too. */
  readonly #found = new Set<string>();
  #isClosed = false;
  #stopWaiting = () => {};

  private constructor(
    root: Buffer,
    recursive: boolean,
    device: bigint,
    listener: { changes(changes: Change[]): void; end(): void },
  ) {
    this.#root = root;
    this.#recursive = recursive;
    this.#device = device;
    this.#onChanges = listener.changes;
    this.#onEnd = listener.end;
  }

  /** Rejects with the failed call's error, or FileRefusal. `end` is called when the watched root is gone. */
  static async begin(
    root: Buffer,
    recursive: boolean,
    listener: { changes(changes: Change[]): void; end(): void },
  ): Promise<Inotify> {
    const facts = await stat(root, { bigint: true });
    const inotify = new Inotify(root, recursive, facts.dev, listener);
    try {
      inotify.#add(root, 0);
      if (recursive && facts.isDirectory()) await inotify.#addBelow(root);
    } catch (error) {
      inotify.close();
      throw error;
    }
    void inotify.#follow().catch((error) => log("file watch", error));
    return inotify;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopWaiting();
    libc.close(this.#fd);
  }

  #add(path: Buffer, mask: number = MASK.dont_follow): void {
    if (this.#places.size >= MAX_PLACES) {
      throw new FileRefusal(StreamErrorCode.too_many_watches, `more than ${MAX_PLACES} directories`);
    }
    this.#places.set(libc.watchPlace(this.#fd, path, WATCHED | mask), path);
  }

  /** Watches the directories below `directory`; returns all its entries. */
  async #addBelow(directory: Buffer): Promise<{ path: Buffer; isDirectory: boolean }[]> {
    const found: { path: Buffer; isDirectory: boolean }[] = [];
    const names = await readdir(directory, { encoding: "buffer" }).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    for (const name of names) {
      if (this.#isClosed) return found;
      const path = joined(directory, name.toString("latin1"));
      const isDirectory = (await entryIfThere(path))?.type === "directory";
      found.push({ path, isDirectory });
      if (isDirectory) for (const below of await this.#enter(path)) found.push(below);
    }
    return found;
  }

  async #enter(path: Buffer): Promise<{ path: Buffer; isDirectory: boolean }[]> {
    try {
      if ((await stat(path, { bigint: true })).dev !== this.#device) return [];
      this.#add(path);
      return await this.#addBelow(path);
    } catch (error) {
      // It is gone again.
      if (isMissing(error) || error instanceof libc.SystemError) return [];
      throw error;
    }
  }

  async #follow(): Promise<void> {
    const buffer = Buffer.alloc(BUFFER_BYTES);
    while (!this.#isClosed) {
      const { over, stop } = waitUntilReadable(this.#fd);
      this.#stopWaiting = stop;
      await over;
      if (this.#isClosed) return;
      const length = libc.readNow(this.#fd, [buffer]);
      if (length > 0 && (await this.#take(buffer.subarray(0, length)))) break;
    }
    this.close();
    this.#onEnd();
  }

  /** Returns whether the watched root is gone. */
  async #take(events: Buffer): Promise<boolean> {
    const changes: Change[] = [];
    const modified = new Set<string>();
    const from = new Map<number, Change>();
    let isGone = false;
    const push = (type: Change["type"], path: Buffer, is_directory: boolean): Change => {
      const change: Change = { type, ...shownPath(path), is_directory };
      changes.push(change);
      return change;
    };
    for (let at = 0; at + HEADER_BYTES <= events.byteLength; ) {
      const [wd, mask] = [events.readInt32LE(at), events.readUInt32LE(at + 4)];
      const [cookie, length] = [events.readUInt32LE(at + 8), events.readUInt32LE(at + 12)];
      const raw = events.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length);
      at += HEADER_BYTES + length;
      if (mask & MASK.overflow) {
        push("overflow", this.#root, true);
        continue;
      }
      const place = this.#places.get(wd);
      if (mask & MASK.ignored) this.#places.delete(wd);
      if (!place) continue;
      const isDirectory = (mask & MASK.is_directory) !== 0;
      const zero = raw.indexOf(0);
      const name = raw.toString("latin1", 0, zero < 0 ? length : zero);
      const path = name === "" ? place : joined(place, name);
      if (name === "" && place === this.#root && mask & (MASK.delete_self | MASK.move_self)) {
        push("deleted", place, isDirectory);
        isGone = true;
      } else if (mask & (MASK.modify | MASK.attrib)) {
        // Each directory reports its own changes, and its parent reports them too.
        if (name === "" && place !== this.#root) continue;
        const key = path.toString("latin1");
        if (!modified.has(key)) push("modified", path, isDirectory);
        modified.add(key);
      } else if (mask & (MASK.create | MASK.moved_to)) {
        const source = from.get(cookie);
        if (source && mask & MASK.moved_to) {
          from.delete(cookie);
          changes.splice(changes.indexOf(source), 1);
          push("moved", path, isDirectory).from = source.path;
        } else if (this.#found.delete(path.toString("latin1"))) continue;
        else push("created", path, isDirectory);
        if (isDirectory && this.#recursive) {
          for (const inside of await this.#enter(path)) {
            this.#found.add(inside.path.toString("latin1"));
            push("created", inside.path, inside.isDirectory);
          }
        }
        modified.delete(path.toString("latin1"));
      } else if (mask & MASK.moved_from) {
        from.set(cookie, push("deleted", path, isDirectory));
      } else if (mask & MASK.delete) push("deleted", path, isDirectory);
    }
    if (changes.length > 0) this.#onChanges(changes);
    if (this.#found.size > MAX_PLACES) this.#found.clear();
    return isGone;
  }
}
