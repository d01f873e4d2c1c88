/** Small disks of their own for a daemon's directories: full ones, and XFS with shared blocks. */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Mounts a small separate disk on the directory. */
export function mountSmall(directory: string, options: string): void {
  mkdirSync(directory, { recursive: true });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory]);
  if (status !== 0) throw new Error(`no tmpfs on ${directory}: ${stderr}`);
}

/** Mounts a separate XFS on the directory, in an image file next to it. */
export function mountSharing(directory: string, mib: number): void {
  mkdirSync(directory, { recursive: true });
  const image = `${directory}.xfs`;
  writeFileSync(image, "");
  truncateSync(image, mib * 1024 ** 2);
  for (const [program, ...words] of [
    ["mkfs.xfs", "-q", "-m", "reflink=1", image],
    ["mount", "-o", "loop", image, directory],
  ] as [string, ...string[]][]) {
    const { status, stderr, error } = spawnSync(program, words);
    if (status !== 0) throw new Error(`no XFS on ${directory}: ${error ?? stderr}`);
  }
}

/** Null if files of the directory, or of a new XFS, can share blocks. */
export function whyNoSharing(directory?: string): string | null {
  const own = mkdtempSync(join(directory ?? tmpdir(), "roomd-sharing-"));
  const at = directory === undefined ? join(own, "disk") : own;
  try {
    if (directory === undefined) mountSharing(at, 300);
    const file = join(at, "file");
    writeFileSync(file, "1");
    copyFileSync(file, `${file}.copy`, constants.COPYFILE_FICLONE_FORCE);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message.trim() : String(error);
  } finally {
    spawnSync("umount", [at]);
    rmSync(own, { recursive: true });
  }
}

export const filler = (directory: string) => join(directory, "filler");

/** Fills the disk except for `leftBytes`. */
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
