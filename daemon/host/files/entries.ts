/** Reads a directory of any size: in slices, with bounded memory, and without blocking the event loop. */
import { closeSync } from "node:fs";
import type { PieceTurns } from "../../core/loop/index.ts";
import { errnoOf } from "../../core/service-error.ts";
import type { Beneath } from "./beneath.ts";
import type { EntryType } from "./facts.ts";
import { getdents } from "./libc.ts";
import { fromBytes, type RawPath } from "./raw-path.ts";

export interface Entry {
  name: RawPath;
  type: EntryType;
  /** Position of the next entry in the directory. */
  next: bigint;
}

// About a thousand names, read in well under a millisecond.
export const SLICE_BYTES = 32 * 1024;
const TYPES: Record<number, EntryType> = { 4: "directory", 8: "file", 10: "symlink" };
const UNKNOWN = 0;

/** The entries in the file system's order, some hundreds at a time; a caller that awaits for each entry needs no `pieces`. */
export async function* readEntries(directory: Beneath, pieces?: PieceTurns): AsyncGenerator<Entry[]> {
  const reader = directory.reader();
  try {
    const buffer = Buffer.allocUnsafeSlow(SLICE_BYTES);
    for (;;) {
      const filled = getdents(reader, buffer);
      if (filled === 0) return;
      yield parseEntries(directory, buffer, filled);
      const turn = pieces?.next();
      if (turn) await turn;
    }
  } catch (error) {
    // The directory was removed while it was read.
    if (errnoOf(error) !== "ENOENT") throw error;
  } finally {
    closeSync(reader);
  }
}

/** struct linux_dirent64: u64 inode, i64 next, u16 length, u8 type, name ending in NUL. */
export function parseEntries(directory: Pick<Beneath, "facts">, buffer: Buffer, filled: number): Entry[] {
  const entries: Entry[] = [];
  for (let at = 0; at < filled; ) {
    const length = buffer.readUInt16LE(at + 16);
    const name = fromBytes(buffer, at + 19, buffer.indexOf(0, at + 19));
    const type = buffer.readUInt8(at + 18);
    const next = buffer.readBigInt64LE(at + 8);
    at += length;
    if (name === "." || name === "..") continue;
    const known = type === UNKNOWN ? directory.facts(name)?.type : (TYPES[type] ?? "other");
    if (known) entries.push({ name, type: known, next });
  }
  return entries;
}
