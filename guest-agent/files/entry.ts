/** The wire form of a file system entry. */
import type { BigIntStats } from "node:fs";
import { lstat, readlink, stat } from "node:fs/promises";
import type { FileEntry } from "../../shared/agent-protocol/files.ts";
import { isMissing } from "./file-error.ts";
import { shownPath } from "./path.ts";

const PERMISSIONS = 0o7777n;
const NS_PER_MS = 1_000_000n;

/** The entry at `path`. Rejects with the error of the failed system call. */
export async function entryAt(path: Buffer, follow = false): Promise<FileEntry> {
  const facts = follow ? await stat(path, { bigint: true }) : await lstat(path, { bigint: true });
  const entry = entryOf(path, facts);
  if (!facts.isSymbolicLink()) return entry;
  const target = await readlink(path, { encoding: "buffer" });
  return { ...entry, target: target.toString() };
}

/** Null if it does not exist. */
export async function entryIfThere(path: Buffer, follow = false): Promise<FileEntry | null> {
  try {
    return await entryAt(path, follow);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

export function entryOf(path: Buffer, facts: BigIntStats): FileEntry {
  const identity = `${facts.dev}:${facts.ino}`;
  return {
    ...shownPath(path),
    type: typeOf(facts),
    size_bytes: Number(facts.size),
    mode: Number(facts.mode & PERMISSIONS),
    uid: Number(facts.uid),
    gid: Number(facts.gid),
    modified_at_ms: Number(facts.mtimeNs / NS_PER_MS),
    identity,
    version: `${identity}:${facts.size}:${facts.mtimeNs}:${facts.ctimeNs}`,
  };
}

function typeOf(facts: BigIntStats): FileEntry["type"] {
  if (facts.isFile()) return "file";
  if (facts.isDirectory()) return "directory";
  return facts.isSymbolicLink() ? "symlink" : "other";
}
