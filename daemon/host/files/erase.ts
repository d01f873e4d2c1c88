/**
 * Removal of a tree of any shape. The tree first gets a temporary name, so that for all readers it is gone immediately; then it is
 * flattened: a subdirectory is moved up to the top of the tree instead of being entered, so that a hundred thousand levels need no more
 * descriptors than two.
 */
import { basename, dirname } from "node:path";
import { monotonicMs } from "../../core/clock.ts";
import { errnoOf } from "../../core/service-error.ts";
import { Beneath } from "./beneath.ts";
import { onFullDisk } from "./disk.ts";
import { type Entry, readEntries } from "./entries.ts";
import { ifThere, isGone } from "./gone.ts";
import { type RawPath, toRaw } from "./raw-path.ts";
import { temporaryName } from "./temporary.ts";

/** Freed by removals: bytes on the disk, files, and names of any kind. */
export interface Freed {
  used_bytes: number;
  file_count: number;
  entry_count: number;
}

export interface EraseOptions {
  /** Frees some space on a full disk, because a new name may take a block; false if no space can be freed. */
  giveUp?: () => boolean;
  /** Called with the removed amount, some names at a time. */
  onFreed?: (freed: Freed) => void;
  /** A guest may continue to fill a directory that it still has open; the remainder after this time is hidden, and swept later. */
  withinMs?: number;
}

const ERASE_MS = 10 * 60_000;
/** Enough to keep the threads that wait for the disk busy, few enough that other calls soon get a thread. */
const AT_ONCE = 8;

/** Removes the entry with this name, durably. Throws ENOENT. */
export async function erase(parent: Beneath, name: RawPath, options: EraseOptions = {}): Promise<void> {
  const hidden = temporaryName();
  await onFullDisk(options.giveUp ?? (() => false), () => parent.rename(name, parent, hidden, "refuse"));
  await parent.sync();
  await eraseHidden(parent, hidden, options);
}

/** Removes a directory of the host's own with all that guests have put below it and can no longer reach. Does nothing if it is gone. */
export async function eraseDirectory(directory: string, giveUp: () => boolean): Promise<void> {
  using parent = ifThere(() => Beneath.open(dirname(directory)));
  if (parent) await eraseHidden(parent, toRaw(basename(directory)), { giveUp, withinMs: Number.POSITIVE_INFINITY });
}

/** Removes the entry under a name that no caller uses. */
export async function eraseHidden(parent: Beneath, hidden: RawPath, options: EraseOptions = {}): Promise<void> {
  const removal = new Removal(options);
  if (await removal.of(parent, { name: hidden, type: "file" })) return;
  const deadline = monotonicMs() + (options.withinMs ?? ERASE_MS);
  while (!(await removal.of(parent, { name: hidden, type: "directory" }))) {
    if (monotonicMs() > deadline) throw new Error("the tree is being filled faster than it can be erased");
    using top = parent.plainDirectory(hidden);
    if (top) await forEach(top, (entry) => removal.flatten(top, entry));
  }
}

type NamedEntry = Pick<Entry, "name" | "type">;

class Removal {
  readonly #giveUp: () => boolean;
  readonly #onFreed: ((freed: Freed) => void) | undefined;

  constructor({ giveUp = () => false, onFreed }: EraseOptions) {
    this.#giveUp = giveUp;
    this.#onFreed = onFreed;
  }

  /** Removes the entry, or moves its content up into `top` and then removes it. */
  async flatten(top: Beneath, entry: NamedEntry): Promise<void> {
    if (await this.of(top, entry)) return;
    using directory = top.plainDirectory(entry.name);
    if (!directory) return;
    await forEach(directory, async (inner) => {
      if (await this.of(directory, inner)) return;
      const moved = onFullDisk(this.#giveUp, () => directory.rename(inner.name, top, temporaryName(), "refuse"));
      await moved.catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    });
    await this.of(top, { name: entry.name, type: "directory" });
  }

  /** Whether the entry is gone. */
  async of(directory: Beneath, { name, type }: NamedEntry): Promise<boolean> {
    const use = this.#onFreed ? directory.use(name) : null;
    try {
      await (type === "directory" ? directory.removeDirectory(name) : directory.unlink(name));
    } catch (error) {
      const code = errnoOf(error) ?? "";
      if (code === "ENOENT") return true;
      if (STILL_THERE.has(code)) return false;
      throw error;
    }
    if (use) {
      const isLast = use.type === "directory" || use.links === 1;
      const file_count = use.type === "file" && isLast ? 1 : 0;
      this.#onFreed?.({ used_bytes: isLast ? use.allocated_bytes : 0, file_count, entry_count: 1 });
    }
    return true;
  }
}

// A directory that is not empty, or an entry that a guest replaced by one of the other kind: the next round handles it.
const STILL_THERE = new Set(["ENOTEMPTY", "EEXIST", "EISDIR", "ENOTDIR", "EBUSY"]);

async function forEach(directory: Beneath, work: (entry: Entry) => Promise<void>): Promise<void> {
  for await (const entries of readEntries(directory)) {
    for (let at = 0; at < entries.length; at += AT_ONCE) {
      await Promise.all(entries.slice(at, at + AT_ONCE).map(work));
    }
  }
}
