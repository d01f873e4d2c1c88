/** Owns files that are made once and then kept: each is there whole or not at all, also after a loss of power. */
import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errnoOf } from "./service-error.ts";

/** What the file holds, after making it where there is none. Two that start at once agree on one. */
export function readKept(file: string, make: () => string | Buffer): Buffer {
  if (!existsSync(file)) makeKept(file, make());
  return readFileSync(file);
}

function makeKept(file: string, content: string | Buffer): void {
  const unfinished = `${file}.${randomUUID()}`;
  const opened = openSync(unfinished, "wx", 0o600);
  try {
    writeFileSync(opened, content);
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
  try {
    linkSync(unfinished, file);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(unfinished);
  }
  syncDirectory(dirname(file));
}

/** Its entries are on disk then: what was made of the file may be given away. */
function syncDirectory(directory: string): void {
  const opened = openSync(directory, "r");
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}
