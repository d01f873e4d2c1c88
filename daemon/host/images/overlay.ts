/** Owns the disk of a sandbox: an empty qcow2 overlay over its template's disk, so that no guest writes into another. */

import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { runProgram } from "../process.ts";

const DEADLINE_MS = 60_000;
/** What its file begins with. */
const QCOW2 = "QFI\u00fb";
/** Where its header has what: where the name of what it lies over stands, and how long that is; the size; and the last byte of the features that a reader must know, with the bit of another file for data. */
const BACKING_AT = 8;
const BACKING_BYTES_AT = 16;
const SIZE_AT = 24;
const LAST_FEATURES_AT = 79;
const DATA_FILE = 4;
/** The smallest cluster that there may be has 512 bytes, ours the usual 64 KiB: nothing else begins before. */
const MOST_HEADER_BYTES = 65_536;
/** docs/interop/qcow2.rst of QEMU. */
const MOST_BACKING_BYTES = 1023;

/**
 * Makes an empty overlay over `backing`, once per template; sandboxes copy it, which needs no process.
 * `backing` is written into the file as it is given: a relative one is relative to where the copies lie.
 */
export async function makeOverlay(qemuImg: string, overlay: string, backing: string, sizeBytes: number): Promise<void> {
  await runProgram(
    [qemuImg, "create", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", backing, overlay, String(sizeBytes)],
    DEADLINE_MS,
  );
}

/** Makes an empty disk over nothing. */
export async function makeDisk(qemuImg: string, disk: string, sizeBytes: number): Promise<void> {
  await runProgram([qemuImg, "create", "-q", "-f", "qcow2", disk, String(sizeBytes)], DEADLINE_MS);
}

/** A sandbox's own overlay: a copy of the template's empty one. */
export async function copyOverlay(empty: string, overlay: string): Promise<void> {
  await copyFile(empty, overlay, constants.COPYFILE_FICLONE);
}

/** Says that a disk which nobody has open lies over another file, relative to where it lies itself. Throws where there is no room for that. */
export function setBacking(disk: string, backing: string): void {
  const header = headerOf(disk);
  const at = Number(header.readBigUInt64BE(BACKING_AT));
  const name = Buffer.from(backing);
  if (at === 0 || at + name.byteLength > MOST_HEADER_BYTES)
    throw new Error(`${disk} cannot be said to lie over ${backing}`);
  header.writeUInt32BE(name.byteLength, BACKING_BYTES_AT);
  const file = openSync(disk, "r+");
  try {
    writeSync(file, name, 0, name.byteLength, at);
    writeSync(file, header, BACKING_BYTES_AT, 4, BACKING_BYTES_AT);
  } finally {
    closeSync(file);
  }
}

/** What a disk says that it lies over, relative to where it lies itself; null where that is nothing. Throws where there is no disk. */
export function backingOf(disk: string): string | null {
  const header = headerOf(disk);
  const at = Number(header.readBigUInt64BE(BACKING_AT));
  const size = header.readUInt32BE(BACKING_BYTES_AT);
  if (at === 0) return null;
  if (size > MOST_BACKING_BYTES) throw new Error(`${disk} names too long a file below it`);
  const name = Buffer.alloc(size);
  const file = openSync(disk, "r");
  try {
    readSync(file, name, 0, size, at);
  } finally {
    closeSync(file);
  }
  return name.toString();
}

/** A root as it was made: raw by ourselves, or qcow2 by a guest's QEMU, over the one that it began with or over nothing. */
export type MadeRoot = { path: string; format: "raw" } | { path: string; format: "qcow2"; over: string | null };

/** Turns a root image into a qcow2 without holes, and returns its virtual size. What it lies over is not looked up in it: a QEMU may have written that. */
export async function convertRoot(qemuImg: string, from: MadeRoot, qcow2: string): Promise<number> {
  const file = (filename: string) => ({ driver: "file", filename });
  const over = (path: string) => ({ driver: "qcow2", backing: null, file: file(path) });
  if (from.format === "qcow2") requireOneFile(from.path);
  const source =
    from.format === "raw"
      ? { driver: "raw", file: file(from.path) }
      : { ...over(from.path), backing: from.over === null ? null : over(from.over) };
  await runProgram([qemuImg, "convert", "-O", "qcow2", `json:${JSON.stringify(source)}`, qcow2], 10 * DEADLINE_MS);
  const info = JSON.parse(await runProgram([qemuImg, "info", "--output=json", qcow2], DEADLINE_MS)) as {
    "virtual-size": number;
  };
  return info["virtual-size"];
}

/** What a disk (qcow2) may grow to, in MiB. Throws where there is none. */
export function diskMib(path: string): number {
  return Math.ceil(Number(headerOf(path).readBigUInt64BE(SIZE_AT)) / 1024 ** 2);
}

/** Its data may be said to lie in any other file, which would be opened. */
function requireOneFile(path: string): void {
  if ((headerOf(path).readUInt8(LAST_FEATURES_AT) & DATA_FILE) !== 0)
    throw new Error(`${path} has its data in another file`);
}

/** The first fields of the header (docs/interop/qcow2.rst of QEMU). Throws where there is none. */
function headerOf(path: string): Buffer {
  const header = Buffer.alloc(80);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  if (header.toString("latin1", 0, 4) !== QCOW2) throw new Error(`${path} is no qcow2 disk`);
  return header;
}
