/**
 * Owns writing small files that must survive a loss of power: each is there whole, as it was or as it is to be, and once it is
 * written it stays so.
 */
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
import { errnoOf } from "./service-error.ts";

const KEY_BYTES = 32;

/** What the file holds, after making it where there is none. Two that start at once agree on one. */
export function readKept(file: string, make: () => string | Buffer): Buffer {
  if (!existsSync(file)) makeKept(file, make());
  return readFileSync(file);
}

/** A key of 256 bits that the file holds, made where there is none. Throws when the file is not one that was written here. */
export function keptKey(file: string): Buffer {
  const key = readKept(file, () => randomBytes(KEY_BYTES));
  if (key.byteLength === KEY_BYTES) return key;
  throw new Error(`${file} has changed since roomd wrote it: restore it from a copy, or remove it`);
}

/** Writes the file anew, under its name only when it is whole. */
export function replaceKept(file: string, content: string | Buffer, mode: number): void {
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

/** The bytes on disk, beside the file; returns where. Nothing is left of one that could not be written. */
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

/** Its entries are on disk then: what was made of the file may be given away. */
export function syncDirectory(directory: string): void {
  const opened = openSync(directory, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
