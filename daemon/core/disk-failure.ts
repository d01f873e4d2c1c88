/**
 * Disk failures that affect acknowledged data. After a failed write or sync, the kernel may have dropped pages and marked them clean
 * (fsync(2)), so nothing may be acknowledged afterwards: the service ends, and the next start writes the possibly lost pages again.
 */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { causesOf, errnoOf } from "./service-error.ts";

/** Exit status of a service that ends because of a disk failure; EX_IOERR of sysexits.h. */
export const DISK_FAILED_STATUS = 74;

export class DiskFailure extends Error {
  override name = "DiskFailure";
}

/** SQLITE_IOERR_SHMSIZE: no space for the log's index, which a connection needs first. */
const FULL = new Set(["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"]);
const NO_SPACE = new Set(["ENOSPC", "EDQUOT"]);
const PROBE_BYTES = 64 * 1024;

const anyCode = (error: unknown, matches: (code: string) => boolean) =>
  causesOf(error).some((cause) => matches(errnoOf(cause) ?? ""));

/** Whether SQLite found no space. */
export function isDiskFull(error: unknown): boolean {
  return anyCode(error, (code) => FULL.has(code));
}

/** Whether a system call failed for lack of space. */
export function isOutOfSpace(error: unknown): boolean {
  return anyCode(error, (code) => NO_SPACE.has(code));
}

/** Whether SQLite failed to read, write or sync a file for a reason other than lack of space. */
export function isDiskFailure(error: unknown): boolean {
  return anyCode(error, (code) => code.startsWith("SQLITE_IOERR") && !FULL.has(code));
}

/** Whether a quota, which SQLite reports as a failed write, leaves no space in this file's directory. */
export function isOverQuota(file: string): boolean {
  const probe = `${file}.space`;
  try {
    const opened = openSync(probe, "w", 0o600);
    try {
      return writeSync(opened, Buffer.alloc(PROBE_BYTES)) < PROBE_BYTES;
    } finally {
      closeSync(opened);
      rmSync(probe, { force: true });
    }
  } catch (error) {
    return isOutOfSpace(error);
  }
}

/** Runs a checkpoint, which leaves the log unchanged if the disk is full or another process holds a lock. */
export function unlessFull(checkpoint: () => void, file: string | null = null): void {
  try {
    checkpoint();
  } catch (error) {
    const isBusy = errnoOf(error)?.startsWith("SQLITE_BUSY");
    const isFull = isDiskFull(error) || (errnoOf(error) === "SQLITE_IOERR_WRITE" && file && isOverQuota(file));
    if (!isBusy && !isFull) throw error;
  }
}

/** Ends the service: `serve` exits with DISK_FAILED_STATUS. Returns first, so that the caller can withhold its answers. */
export function endForDisk(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
