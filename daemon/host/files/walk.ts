/**
 * Walk over a whole tree, however deep and wide it is: bounded memory and descriptors, links never followed.
 *
 * The deepest levels of the way down are held open. Of those above only the inode and the read position are retained, 16 bytes a level; on
 * the way up such a directory is opened again as `..` and verified by its inode. If a guest has moved one since, the walk ends and reports
 * `moved`.
 */
import type { PieceTurns } from "../../core/loop/index.ts";
import { errnoOf } from "../../core/service-error.ts";
import type { Beneath } from "./beneath.ts";
import { type Entry, parseEntries, SLICE_BYTES } from "./entries.ts";
import { HERE } from "./raw-path.ts";

/** Limit of open levels: each takes a descriptor and some hundred names. */
export const LEVELS_HELD = 64;

/** `cut`: there are more entries than the maximum to visit. `moved`: the entries that remained to be visited were not found again. */
export type WalkEnd = "complete" | "cut" | "moved";

export interface WalkOptions {
  /** Absent: the walk runs in a thread that has nothing else to do. */
  pieces?: PieceTurns;
  /** The walk ends after this many entries: a guest may make them faster than they are visited. */
  most?: number;
  /** After a directory was visited: true if its entries come next, false if it is gone. */
  onDown?(isEntered: boolean): void;
  /** After all entries of a directory were visited. */
  onUp?(): void;
}

/** Calls `visit` for every entry, a directory before its entries. */
export async function walk(
  root: Beneath,
  visit: (directory: Beneath, entry: Entry) => void | Promise<void>,
  { pieces, most = Number.POSITIVE_INFINITY, onDown, onUp }: WalkOptions = {},
): Promise<WalkEnd> {
  using way = new Way(root);
  for (let visits = 0; ; ) {
    const { directory, entry } = way.next();
    const turn = pieces?.next();
    if (turn) await turn;
    if (entry) {
      if (++visits > most) return "cut";
      const visited = visit(directory, entry);
      if (visited) await visited;
      if (entry.type === "directory") {
        const isEntered = way.down(entry);
        onDown?.(isEntered);
      }
    } else if (way.isAtTop) {
      return "complete";
    } else if (way.up()) {
      onUp?.();
    } else {
      return "moved";
    }
  }
}

interface Level {
  directory: Beneath;
  /** The entries read so far, and how many of them are done. */
  entries: Entry[];
  taken: number;
}

/** The directories from the root down to the current position. */
class Way implements Disposable {
  readonly #levels: Level[] = [];
  readonly #left = new Trail();
  readonly #buffer = Buffer.allocUnsafeSlow(SLICE_BYTES);
  #current: Level;

  constructor(root: Beneath) {
    const directory = root.plainDirectory(HERE);
    if (!directory) throw new Error("the root of the walk is gone");
    this.#current = this.#enter(directory);
  }

  get isAtTop(): boolean {
    return this.#levels.length === 1 && this.#left.length === 0;
  }

  /** The next entry of the current directory; none at its end. */
  next(): { directory: Beneath; entry: Entry | undefined } {
    const level = this.#current;
    while (level.taken === level.entries.length && this.#read(level));
    return { directory: level.directory, entry: level.entries[level.taken++] };
  }

  /** Descends into the directory that `next` returned last, if it still exists. */
  down({ name }: Entry): boolean {
    const directory = this.#current.directory.plainDirectory(name);
    if (!directory) return false;
    this.#current = this.#enter(directory);
    if (this.#levels.length > LEVELS_HELD) this.#leave();
    return true;
  }

  /** Ascends to the parent directory; false when it no longer exists. */
  up(): boolean {
    using below = this.#current.directory;
    this.#levels.pop();
    const above = this.#levels.at(-1);
    if (above) {
      this.#current = above;
      return true;
    }
    const { inode, next } = this.#left.pop();
    const found = below.above();
    this.#current = this.#enter(found);
    if (found.inode !== inode) return false;
    found.seek(next);
    return true;
  }

  [Symbol.dispose](): void {
    for (const { directory } of this.#levels) directory[Symbol.dispose]();
  }

  #enter(directory: Beneath): Level {
    const level = { directory, entries: [], taken: 0 };
    this.#levels.push(level);
    return level;
  }

  /** Closes the uppermost of the open levels. */
  #leave(): void {
    const level = this.#levels.shift();
    if (!level) return;
    using directory = level.directory;
    this.#left.push(directory.inode, level.entries[level.taken - 1]?.next ?? 0n);
  }

  #read(level: Level): boolean {
    let filled = 0;
    try {
      filled = level.directory.readInto(this.#buffer);
    } catch (error) {
      // The directory was removed while it was read.
      if (errnoOf(error) !== "ENOENT") throw error;
    }
    level.entries = filled === 0 ? [] : parseEntries(level.directory, this.#buffer, filled);
    level.taken = 0;
    return filled > 0;
  }
}

/** The levels that are not open, in a compact form. */
class Trail {
  #inodes = new BigUint64Array(256);
  #nexts = new BigInt64Array(256);
  length = 0;

  push(inode: bigint, next: bigint): void {
    if (this.length === this.#inodes.length) {
      const [inodes, nexts] = [new BigUint64Array(2 * this.length), new BigInt64Array(2 * this.length)];
      inodes.set(this.#inodes);
      nexts.set(this.#nexts);
      [this.#inodes, this.#nexts] = [inodes, nexts];
    }
    this.#inodes[this.length] = inode;
    this.#nexts[this.length++] = next;
  }

  pop(): { inode: bigint; next: bigint } {
    const at = --this.length;
    return { inode: this.#inodes[at] ?? 0n, next: this.#nexts[at] ?? 0n };
  }
}
