/** Atomic writes of small files that must survive a loss of power: each has its old or its new content, and is durable after the write. */
import { randomBytes, randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { errnoOf } from "../service-error.ts";

const KEY_BYTES = 32;

/** The file's content; makes the file if absent. Concurrent starts agree on one. */
export function readDurable(file: string, make: () => string | Buffer): Buffer {
  if (!existsSync(file)) makeKept(file, make());
  return readFileSync(file);
}

/** A key of 256 bits in the file, made if absent. Throws if the file was changed since it was written here. */
export function durableKey(file: string): Buffer {
  const key = readDurable(file, () => randomBytes(KEY_BYTES));
  if (key.byteLength === KEY_BYTES) return key;
  throw new Error(`${file} has changed since roomd wrote it: restore it from a copy, or remove it`);
}

/** Replaces the file atomically by rename. */
export function replaceDurable(file: string, content: string | Buffer, mode: number): void {
  renameSync(writeUnfinished(file, content, mode), file);
  syncDirectory(dirname(file));
}

function makeKept(file: string, content: string | Buffer): void {
  const unfinished = writeUnfinished(file, content, 0o600);
  try {
    linkSync(unfinished, file);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(unfinished);
  }
  syncDirectory(dirname(file));
}

/** Writes and syncs a temporary file in the same directory; returns its path. A failed write leaves no file. */
function writeUnfinished(file: string, content: string | Buffer, mode: number): string {
  const unfinished = `${file}.${randomUUID()}`;
  const opened = openSync(unfinished, "wx", mode);
  try {
    writeFileSync(opened, content);
    fsyncSync(opened);
    return unfinished;
  } catch (error) {
    rmSync(unfinished);
    throw error;
  } finally {
    closeSync(opened);
  }
}

/** Makes the directory's entries durable: after it the file's content may be passed on. */
export function syncDirectory(directory: string): void {
  const opened = openSync(directory, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
