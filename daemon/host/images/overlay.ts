/** The disk of a sandbox: an empty qcow2 overlay over its template's disk, so that no guest writes into another's. */

import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { copyFile, rm, writeFile } from "node:fs/promises";
import { asHelper, withoutNetwork, withoutSurvivors } from "../isolation/argv.ts";
import { ownFile } from "../isolation/directories.ts";
import type { Identity } from "../isolation/ids.ts";
import { runProgram } from "../process.ts";

const DEADLINE_MS = 60_000;
const CONVERT_DEADLINE_MS = 10 * DEADLINE_MS;
/** Magic number of its file. */
const QCOW2 = "QFI\u00fb";
/**
 * Offsets in its header: position and length of the backing file's name; the size; and the last byte of the features that a reader must
 * know, with the bit of an external data file.
 */
const BACKING_AT = 8;
const BACKING_BYTES_AT = 16;
const SIZE_AT = 24;
const LAST_FEATURES_AT = 79;
const DATA_FILE = 4;
/** The smallest possible cluster has 512 bytes, ours the usual 64 KiB: no other content starts before. */
const MAX_HEADER_BYTES = 65_536;
/** docs/interop/qcow2.rst of QEMU. */
const MAX_BACKING_BYTES = 1023;

/**
 * Makes an empty overlay over `backing`, once per template; sandboxes copy it, which needs no process. `backing` is written into the file
 * as given: a relative path is relative to the directory of the copies.
 */
export async function makeOverlay(qemuImg: string, overlay: string, backing: string, sizeBytes: number): Promise<void> {
  await runProgram(
    [qemuImg, "create", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", backing, overlay, String(sizeBytes)],
    DEADLINE_MS,
  );
}

/** Creates an empty disk without a backing file. */
export async function makeDisk(qemuImg: string, disk: string, sizeBytes: number): Promise<void> {
  await runProgram([qemuImg, "create", "-q", "-f", "qcow2", disk, String(sizeBytes)], DEADLINE_MS);
}

/** A sandbox's own overlay: a copy of the template's empty one. */
export async function copyOverlay(empty: string, overlay: string): Promise<void> {
  // Never over an existing file: a guest may be writing to it.
  await copyFile(empty, overlay, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
}

/** Sets the backing file of a disk that is not open, relative to the disk's directory. Throws if the header has no room for it. */
export function setBacking(disk: string, backing: string): void {
  const header = headerOf(disk);
  const at = Number(header.readBigUInt64BE(BACKING_AT));
  const name = Buffer.from(backing);
  if (at === 0 || at + name.byteLength > MAX_HEADER_BYTES)
    throw new Error(`the header of ${disk} has no space for the backing file ${backing}`);
  header.writeUInt32BE(name.byteLength, BACKING_BYTES_AT);
  const file = openSync(disk, "r+");
  try {
    writeSync(file, name, 0, name.byteLength, at);
    writeSync(file, header, BACKING_BYTES_AT, 4, BACKING_BYTES_AT);
  } finally {
    closeSync(file);
  }
}

/** The backing file recorded in the header, relative to the disk's directory; null if it has none. Throws if the disk is absent. */
export function backingOf(disk: string): string | null {
  const header = headerOf(disk);
  const at = Number(header.readBigUInt64BE(BACKING_AT));
  const size = header.readUInt32BE(BACKING_BYTES_AT);
  if (at === 0) return null;
  if (size > MAX_BACKING_BYTES) throw new Error(`${disk} has a backing file with too long a path`);
  const name = Buffer.alloc(size);
  const file = openSync(disk, "r");
  try {
    readSync(file, name, 0, size, at);
  } finally {
    closeSync(file);
  }
  return name.toString();
}

/** A built root: raw by the daemon, or qcow2 by a guest's QEMU, with its initial root or nothing as backing file. */
export type MadeRoot = { path: string; format: "raw" } | GuestRoot;

export interface GuestRoot {
  path: string;
  format: "qcow2";
  over: string | null;
  /** Its virtual size only. */
  size_bytes: number;
  /** The user that qemu-img runs as, and that owns the file from then on; null: the daemon's. */
  user: Identity | null;
}

/** Allowance for a qcow2 file's metadata: reference counts and cluster tables. */
const METADATA_SHARE = 1 / 64;
const METADATA_BYTES = 16 * 1024 ** 2;

/** Converts a root image to a qcow2 file without holes. The backing file is not read from the image: a QEMU may have written that. */
export async function convertRoot(qemuImg: string, from: MadeRoot, qcow2: string): Promise<void> {
  const file = (filename: string) => ({ driver: "file", filename });
  if (from.format === "raw") {
    const source = { driver: "raw", file: file(from.path) };
    await runProgram(convertArgv(qemuImg, source, qcow2), CONVERT_DEADLINE_MS);
    return;
  }
  const { over, size_bytes, user } = from;
  requireAlone(from.path, size_bytes);
  const disk = (path: string) => ({ driver: "qcow2", backing: null, file: file(path) });
  const argv = convertArgv(qemuImg, { ...disk(from.path), backing: over === null ? null : disk(over) }, qcow2);
  if (user === null) {
    await runProgram(argv, CONVERT_DEADLINE_MS);
    return;
  }
  // qemu-img may write into an existing file, but create none.
  await rm(qcow2, { force: true });
  await writeFile(qcow2, "", { mode: 0o600, flag: "wx" });
  for (const path of [from.path, qcow2]) await ownFile(path, user.uid);
  const mostBytes = Math.ceil(size_bytes * (1 + METADATA_SHARE)) + METADATA_BYTES;
  // The image may have compromised qemu-img. None of its processes may write to the result after the check.
  await runProgram(withoutNetwork(withoutSurvivors(asHelper(user, mostBytes, argv))), CONVERT_DEADLINE_MS);
  await ownFile(qcow2, 0);
  if (backingOf(qcow2) !== null) throw new Error(`${qcow2} has a backing file`);
  requireAlone(qcow2, size_bytes);
}

function convertArgv(qemuImg: string, source: object, qcow2: string): string[] {
  return [qemuImg, "convert", "-O", "qcow2", `json:${JSON.stringify(source)}`, qcow2];
}

/** The virtual size of a disk (qcow2), in bytes. Throws if the disk is absent. */
export function diskBytes(path: string): number {
  return Number(headerOf(path).readBigUInt64BE(SIZE_AT));
}

/** The size to which a disk (qcow2) may grow, in MiB. Throws if the disk is absent. */
export function diskMib(path: string): number {
  return Math.ceil(diskBytes(path) / 1024 ** 2);
}

/** The header may name another file for its data, which would be opened. */
function requireAlone(path: string, sizeBytes: number): void {
  if ((headerOf(path).readUInt8(LAST_FEATURES_AT) & DATA_FILE) !== 0)
    throw new Error(`${path} has its data in another file`);
  const size = diskBytes(path);
  if (size !== sizeBytes) throw new Error(`${path} has a size of ${size} bytes instead of ${sizeBytes}`);
}

/** The first fields of the header (docs/interop/qcow2.rst of QEMU). Throws if the header is absent. */
function headerOf(path: string): Buffer {
  const header = Buffer.alloc(80);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  if (header.toString("latin1", 0, 4) !== QCOW2) throw new Error(`${path} is not a qcow2 disk`);
  return header;
}
