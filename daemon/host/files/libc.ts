/**
 * File calls of libc that the runtime lacks, by FFI. They run on the event loop's thread, so only calls that touch metadata are here.
 * Everything else goes through node:fs, by way of /proc/self/fd.
 */
import { dlopen, type Pointer, read } from "bun:ffi";
import { constants as osConstants } from "node:os";
import { errnoOf } from "../../core/service-error.ts";
import type { RawPath } from "./raw-path.ts";

const libc = dlopen("libc.so.6", {
  syscall: { args: ["i32", "i32", "ptr", "ptr", "u64"], returns: "i32" },
  statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
  renameat2: { args: ["i32", "ptr", "i32", "ptr", "u32"], returns: "i32" },
  getdents64: { args: ["i32", "ptr", "u64"], returns: "i32" },
  lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
  futimens: { args: ["i32", "ptr"], returns: "i32" },
  utimensat: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
  fallocate: { args: ["i32", "i32", "i64", "i64"], returns: "i32" },
  setfsuid: { args: ["u32"], returns: "i32" },
  setfsgid: { args: ["u32"], returns: "i32" },
  prlimit64: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
}).symbols;

// errno has one address per thread, and nothing may run between a call and the read of its errno.
const errnoAt = libc.__errno_location() as Pointer;
// Aliases of EAGAIN and EOPNOTSUPP.
const { EWOULDBLOCK: _again, ENOTSUP: _unsupported, ...errnos } = osConstants.errno;
const ERRNO_NAMES = new Map(Object.entries(errnos).map(([name, number]) => [number, name]));

/** A failed system call; `code` is the errno name, as in node's own errors. */
export class SystemError extends Error {
  override name = "SystemError";
  readonly code: string;

  constructor(code: string, call: string) {
    super(`${code}: ${call}`);
    this.code = code;
  }
}

/** The result of a call, or its errno thrown as SystemError; nothing may run between the two. */
export function check(result: number, call: string): number {
  if (result >= 0) return result;
  const errno = read.i32(errnoAt, 0);
  throw new SystemError(ERRNO_NAMES.get(errno) ?? `E${errno}`, call);
}

function cString(path: RawPath): Buffer {
  return Buffer.from(`${path}\0`, "latin1");
}

// The same on every architecture that Bun supports; constants that differ come from node:fs.
export const O_PATH = 0o10000000;
export const O_CLOEXEC = 0o2000000;
export const RESOLVE_NO_MAGICLINKS = 0x02;
export const RESOLVE_NO_SYMLINKS = 0x04;
export const RESOLVE_BENEATH = 0x08;

const SYS_openat2 = 437;
const openHow = new BigUint64Array(3);
// A rename anywhere on the host makes `..` fail with EAGAIN; a guest that renames all the time must not hold the loop for long.
const MAX_TRIES = 256;

/** openat2(2). Throws SystemError: EXDEV if the path leads out of the directory, EAGAIN if renames never let the call finish. */
export function openat2(directory: number, path: RawPath, flags: number, mode: number, resolve: number): number {
  const name = cString(path);
  for (let tries = 1; ; tries++) {
    openHow[0] = BigInt(flags);
    openHow[1] = BigInt(mode);
    openHow[2] = BigInt(resolve);
    try {
      return check(libc.syscall(SYS_openat2, directory, name, openHow, openHow.byteLength), "openat2");
    } catch (error) {
      const again = error instanceof SystemError && (error.code === "EAGAIN" || error.code === "EINTR");
      if (!again || tries >= MAX_TRIES) throw error;
    }
  }
}

const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_NO_AUTOMOUNT = 0x800;
const AT_EMPTY_PATH = 0x1000;
const STATX_BASIC_STATS = 0x7ff;
const statxBuffer = new Uint8Array(256);
const statxView = new DataView(statxBuffer.buffer);
const NO_NAME = "" as RawPath;

/** statx(2) of a name without following links, or of the descriptor itself. The view is valid until the next call. */
export function statx(directory: number, name: RawPath = NO_NAME): DataView {
  const flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name === NO_NAME ? AT_EMPTY_PATH : 0);
  check(libc.statx(directory, cString(name), flags, STATX_BASIC_STATS, statxBuffer), "statx");
  return statxView;
}

const RENAME_NOREPLACE = 1;

/** renameat2(2) that fails with EEXIST if the new name exists. */
export function renameNoReplace(from: number, name: RawPath, to: number, newName: RawPath): void {
  check(libc.renameat2(from, cString(name), to, cString(newName), RENAME_NOREPLACE), "renameat2");
}

const RENAME_EXCHANGE = 2;
const AT_FDCWD = -100;

/** Exchanges two names by renameat2(2). */
export function exchangeNames(one: string, other: string): void {
  const [first, second] = [Buffer.from(`${one}\0`), Buffer.from(`${other}\0`)];
  check(libc.renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE), "renameat2");
}

/** getdents64(2): fills the buffer with the next entries and returns how many bytes they take; 0 at the end. */
export function getdents(directory: number, buffer: Buffer): number {
  return check(libc.getdents64(directory, buffer, buffer.length), "getdents64");
}

const SEEK_SET = 0;

/** lseek(2) of a directory to the next offset that an entry of getdents64 contains. */
export function seekTo(directory: number, offset: bigint): void {
  check(Number(libc.lseek(directory, offset, SEEK_SET)), "lseek");
}

const SEEK_END = 2;
const SEEK_DATA = 3;

/**
 * lseek(2) of a file to its next data from `offset` on, or its length if none exists. May take long while guests write to it: use
 * holes.ts then.
 */
export function nextData(file: number, offset: number): number {
  try {
    return check(Number(libc.lseek(file, BigInt(offset), SEEK_DATA)), "lseek");
  } catch (error) {
    if (errnoOf(error) !== "ENXIO") throw error;
    return check(Number(libc.lseek(file, 0n, SEEK_END)), "lseek");
  }
}

const SEEK_HOLE = 4;

/** lseek(2) of a file to its next hole from `offset` on, or its length if none exists. May take as long as nextData. */
export function nextHole(file: number, offset: number): number {
  try {
    return check(Number(libc.lseek(file, BigInt(offset), SEEK_HOLE)), "lseek");
  } catch (error) {
    if (errnoOf(error) !== "ENXIO") throw error;
    return check(Number(libc.lseek(file, 0n, SEEK_END)), "lseek");
  }
}

/** utimensat(2) of a name without following links, or futimens(3) of the descriptor itself: both times, in seconds and nanoseconds. */
export function setTimes(descriptor: number, name: RawPath | null, seconds: bigint, nanoseconds: bigint): void {
  const times = new BigInt64Array([seconds, nanoseconds, seconds, nanoseconds]);
  if (name === null) check(libc.futimens(descriptor, times), "futimens");
  else check(libc.utimensat(descriptor, cString(name), times, AT_SYMLINK_NOFOLLOW), "utimensat");
}

const FALLOC_FL_KEEP_SIZE = 1;

/** Reserves space by fallocate(2), and keeps the file's length. */
export function reserveSpace(file: number, offset: number, length: number): void {
  check(libc.fallocate(file, FALLOC_FL_KEEP_SIZE, offset, length), "fallocate");
}

const FALLOC_FL_PUNCH_HOLE = 2;

/** fallocate(2) that frees the blocks of a part of a file: it reads as zeros from then on. */
export function punchHole(file: number, offset: number, length: number): void {
  check(libc.fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length), "fallocate");
}

/**
 * setfsuid(2), setfsgid(2): files that `work` opens are opened with the rights of this user, and of the group with the same number; null:
 * with ours. They apply to this thread alone, so `work` has to be done when it returns.
 */
export function asFileUser<T>(uid: number | null, work: () => T): T {
  if (uid === null) return work();
  const [ownUid, ownGid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0];
  libc.setfsgid(uid);
  libc.setfsuid(uid);
  try {
    return work();
  } finally {
    libc.setfsuid(ownUid);
    libc.setfsgid(ownGid);
  }
}

const RLIMIT_FSIZE = 1;

/** prlimit(2): limits the size of files that another process writes, at most to its hard limit. Throws SystemError: ESRCH. */
export function limitFileSize(pid: number, bytes: number): void {
  const limits = new BigUint64Array(2);
  check(libc.prlimit64(pid, RLIMIT_FSIZE, null, limits), "prlimit64");
  // The hard limit stays: to raise it again takes a capability that a daemon may lack.
  const most = limits[1] ?? 0n;
  limits[0] = bytes < most ? BigInt(bytes) : most;
  check(libc.prlimit64(pid, RLIMIT_FSIZE, limits, null), "prlimit64");
}
