/**
 * Copies a file's contents to another file by descriptors, for a thread or process that may block: the file system shares the blocks if it
 * can; otherwise the bytes are copied, and holes stay holes.
 */
import { dlopen } from "bun:ffi";
import { ftruncateSync, readSync, writeSync } from "node:fs";
import { errnoOf } from "../../core/service-error.ts";
import { check, nextData, nextHole } from "./libc.ts";

const libc = dlopen("libc.so.6", {
  ioctl: { args: ["i32", "u64", "i32"], returns: "i32" },
  copy_file_range: { args: ["i32", "ptr", "i32", "ptr", "u64", "u32"], returns: "i64" },
  syncfs: { args: ["i32"], returns: "i32" },
}).symbols;

const FICLONE = 0x40049409;
/** Most bytes of one call. */
const PIECE_BYTES = 4 * 1024 ** 2;
/** Errors of a kernel or file system that cannot share blocks between these two files. */
const CANNOT = new Set(["EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "ENOTTY", "EBADF", "EPERM", "ETXTBSY"]);

/**
 * Copies the first `size` bytes of a file into an empty one, by a reflink if possible; else `onPiece` is called for each piece, and may
 * throw.
 */
export function cloneFile(from: number, to: number, size: number, onPiece: (bytes: number) => void): void {
  if (size === 0 || shareBlocks(from, to)) return;
  for (const bytes of copyPieces(from, to, size)) onPiece(bytes);
}

/** Copies the first `size` bytes into an empty file, and yields the length of each piece that is copied. */
export function* copyPieces(from: number, to: number, size: number): Generator<number, void> {
  whole: for (let at = 0; at < size; ) {
    const start = nextData(from, at);
    if (start >= size) break;
    const end = Math.min(size, Math.max(start + 1, nextHole(from, start)));
    for (at = start; at < end; ) {
      const copied = copySome(from, to, at, Math.min(PIECE_BYTES, end - at));
      // It has become shorter.
      if (copied === 0) break whole;
      at += copied;
      yield copied;
    }
  }
  ftruncateSync(to, size);
}

/** Makes an empty file share all blocks of another; false if the file system cannot. */
export function shareBlocks(from: number, to: number): boolean {
  try {
    check(libc.ioctl(to, FICLONE, from), "ioctl FICLONE");
    return true;
  } catch (error) {
    if (CANNOT.has(errnoOf(error) ?? "")) return false;
    throw error;
  }
}

const offsets = new BigInt64Array(2);
let buffer: Buffer | null = null;

function copySome(from: number, to: number, at: number, length: number): number {
  offsets.fill(BigInt(at));
  try {
    const [read, written] = [offsets.subarray(0, 1), offsets.subarray(1, 2)];
    return check(Number(libc.copy_file_range(from, read, to, written, length, 0)), "copy_file_range");
  } catch (error) {
    if (!CANNOT.has(errnoOf(error) ?? "")) throw error;
  }
  buffer ??= Buffer.allocUnsafeSlow(1024 ** 2);
  const read = readSync(from, buffer, 0, Math.min(buffer.length, length), at);
  for (let done = 0; done < read; ) done += writeSync(to, buffer, done, read - done, at + done);
  return read;
}

/** Flushes all data written to a descriptor's file system to disk. */
export function syncFileSystem(descriptor: number): void {
  check(libc.syncfs(descriptor), "syncfs");
}
