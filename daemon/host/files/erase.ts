/**
 * Owns the removal of a tree of any shape. The tree first takes a temporary name, so that for everybody it is gone at once;
 * then it is flattened: a directory found inside is moved up beside it instead of being entered, so that a hundred thousand
 * levels take no more descriptors than two.
 */
import { errnoOf } from "../../core/service-error.ts";
import type { Beneath } from "./beneath.ts";
import { onFullDisk } from "./disk.ts";
import { type Entry, readEntries } from "./entries.ts";
import { isGone } from "./gone.ts";
import type { RawPath } from "./raw-path.ts";
import { temporaryName } from "./temporary.ts";

// A guest may go on filling a directory that it still has open; what is left then is hidden, and swept later.
const ERASE_MS = 10 * 60_000;
const AT_ONCE = 32;

/** Removes what is under this name, durably; a new name may take a block, which `giveUp` finds on a full disk. Throws ENOENT. */
export async function erase(parent: Beneath, name: RawPath, giveUp = () => false): Promise<void> {
  const hidden = temporaryName();
  await onFullDisk(giveUp, () => parent.rename(name, parent, hidden, "refuse"));
  await parent.sync();
  await eraseHidden(parent, hidden, giveUp);
}

/** Removes what already has a temporary name. */
export async function eraseHidden(parent: Beneath, hidden: RawPath, giveUp = () => false): Promise<void> {
  if (await removed(() => parent.unlink(hidden))) return;
  const deadline = performance.now() + ERASE_MS;
  while (!(await removed(() => parent.removeDirectory(hidden)))) {
    if (performance.now() > deadline) throw new Error("the tree is being filled faster than it can be erased");
    using top = parent.plainDirectory(hidden);
    if (top) await forEach(top, (entry) => flatten(top, entry, giveUp));
  }
}

async function flatten(top: Beneath, entry: Entry, giveUp: () => boolean): Promise<void> {
  if (await removed(() => remove(top, entry))) return;
  using directory = top.plainDirectory(entry.name);
  if (!directory) return;
  await forEach(directory, async (inner) => {
    if (await removed(() => remove(directory, inner))) return;
    const moved = onFullDisk(giveUp, () => directory.rename(inner.name, top, temporaryName(), "refuse"));
    await moved.catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  });
  await removed(() => top.removeDirectory(entry.name));
}

function remove(directory: Beneath, entry: Entry): Promise<void> {
  return entry.type === "directory" ? directory.removeDirectory(entry.name) : directory.unlink(entry.name);
}

// A directory that is not empty, or an entry that a guest swapped for one of the other kind: the next round sees to it.
const STILL_THERE = new Set(["ENOTEMPTY", "EEXIST", "EISDIR", "ENOTDIR", "EBUSY"]);

async function removed(remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (code === "ENOENT") return true;
    if (STILL_THERE.has(code)) return false;
    throw error;
  }
}

async function forEach(directory: Beneath, work: (entry: Entry) => Promise<void>): Promise<void> {
  for await (const entries of readEntries(directory)) {
    for (let at = 0; at < entries.length; at += AT_ONCE) {
      await Promise.all(entries.slice(at, at + AT_ONCE).map(work));
    }
  }
}
