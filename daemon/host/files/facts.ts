/** Metadata of a file system entry, read without opening it. */
import { statx } from "./libc.ts";
import type { RawPath } from "./raw-path.ts";

export type EntryType = "file" | "directory" | "symlink" | "other";

export interface Facts {
  type: EntryType;
  /** The twelve permission bits. */
  mode: number;
  links: number;
  size_bytes: number;
  /** Disk usage: a file with holes takes less than its size. */
  allocated_bytes: number;
  /** RFC 3339. */
  modified_at: string;
  /** Device and inode: equal for two names of one file. */
  identity: string;
  /** Two times that change with the content; a guest can set back the first, never the second. */
  version: string;
}

const S_IFMT = 0o170000;
const TYPES = new Map<number, EntryType>([
  [0o100000, "file"],
  [0o040000, "directory"],
  [0o120000, "symlink"],
]);

/** Facts of `name` in the directory, not following it, or of the descriptor itself. Throws SystemError. */
export function readFacts(descriptor: number, name?: RawPath): Facts {
  const view = statx(descriptor, name);
  const mode = view.getUint16(28, true);
  return {
    type: TYPES.get(mode & S_IFMT) ?? "other",
    mode: mode & 0o7777,
    links: view.getUint32(16, true),
    size_bytes: Number(view.getBigUint64(40, true)),
    allocated_bytes: Number(view.getBigUint64(48, true)) * 512,
    modified_at: moment(view, 112),
    identity: `${view.getUint32(136, true)}:${view.getUint32(140, true)}:${view.getBigUint64(32, true)}`,
    version: `${view.getBigInt64(112, true)}.${view.getUint32(120, true)}-${view.getBigInt64(96, true)}.${view.getUint32(104, true)}`,
  };
}

/** Metadata for measuring usage; there may be a million entries. */
export interface Use {
  type: EntryType;
  links: number;
  /** Equal for two names of one file, because a drive is one file system. */
  inode: bigint;
  allocated_bytes: number;
}

/** Reads fewer facts than `readFacts`, at a lower cost. Throws SystemError. */
export function readUse(descriptor: number, name?: RawPath): Use {
  const view = statx(descriptor, name);
  return {
    type: TYPES.get(view.getUint16(28, true) & S_IFMT) ?? "other",
    links: view.getUint32(16, true),
    inode: view.getBigUint64(32, true),
    allocated_bytes: Number(view.getBigUint64(48, true)) * 512,
  };
}

/** Metadata that a copy has to retain, and by which it recognizes an entry. */
export interface Status {
  type: EntryType;
  mode: number;
  uid: number;
  gid: number;
  links: number;
  inode: bigint;
  size_bytes: number;
  /** Seconds and nanoseconds. */
  modified: [seconds: bigint, nanoseconds: number];
  /** Time of the last change, in nanoseconds, which a guest cannot set. */
  changed: bigint;
}

/** Throws SystemError. */
export function readStatus(descriptor: number, name?: RawPath): Status {
  const view = statx(descriptor, name);
  const mode = view.getUint16(28, true);
  return {
    type: TYPES.get(mode & S_IFMT) ?? "other",
    mode: mode & 0o7777,
    uid: view.getUint32(20, true),
    gid: view.getUint32(24, true),
    links: view.getUint32(16, true),
    inode: view.getBigUint64(32, true),
    size_bytes: Number(view.getBigUint64(40, true)),
    modified: [view.getBigInt64(112, true), view.getUint32(120, true)],
    changed: view.getBigInt64(96, true) * 1_000_000_000n + BigInt(view.getUint32(104, true)),
  };
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: a guest may set any time, but RFC 3339 represents only these.
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

function moment(view: DataView, offset: number): string {
  const seconds = Math.min(Math.max(Number(view.getBigInt64(offset, true)), FIRST_SECOND), LAST_SECOND);
  return new Date(seconds * 1000 + Math.floor(view.getUint32(offset + 8, true) / 1e6)).toISOString();
}
