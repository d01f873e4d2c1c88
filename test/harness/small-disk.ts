/** Owns small disks of their own for a daemon's directories, which a test fills and empties. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Gives the directory a small disk of its own. */
export function mountSmall(directory: string, options: string): void {
  mkdirSync(directory, { recursive: true });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory]);
  if (status !== 0) throw new Error(`no tmpfs on ${directory}: ${stderr}`);
}

export const filler = (directory: string) => join(directory, "filler");

/** Takes all of the disk's space but so much. */
export function fill(directory: string, leftBytes = 0): void {
  const taken = fillInto(filler(directory));
  truncateSync(filler(directory), Math.max(0, taken - leftBytes));
}

/** Writes for as long as there is space; returns how much there was. */
export function fillInto(path: string): number {
  const file = openSync(path, "w");
  let taken = 0;
  try {
    for (;;) taken += writeSync(file, Buffer.alloc(4096, 1));
  } catch (error) {
    if (!String(error).includes("ENOSPC")) throw error;
    return taken;
  } finally {
    closeSync(file);
  }
}

export const empty = (directory: string) => rmSync(filler(directory), { recursive: true, force: true });
