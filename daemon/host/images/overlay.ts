/** Owns the disk of a sandbox: an empty qcow2 overlay over its template's disk, so that no guest writes into another. */

import { closeSync, constants, openSync, readSync } from "node:fs";
import { copyFile, rm } from "node:fs/promises";
import { runProgram } from "../process.ts";

const DEADLINE_MS = 60_000;
/** What its file begins with. */
const QCOW2 = "QFI\u00fb";

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

export async function removeOverlay(overlay: string): Promise<void> {
  await rm(overlay, { force: true });
}

/** Turns a root image, raw or one that a guest wrote, into a qcow2 without holes, and returns its virtual size. */
export async function convertRoot(
  qemuImg: string,
  from: { path: string; format: "raw" | "qcow2" },
  qcow2: string,
): Promise<number> {
  await runProgram([qemuImg, "convert", "-f", from.format, "-O", "qcow2", from.path, qcow2], 10 * DEADLINE_MS);
  const info = JSON.parse(await runProgram([qemuImg, "info", "--output=json", qcow2], DEADLINE_MS)) as {
    "virtual-size": number;
  };
  return info["virtual-size"];
}

/** What a disk (qcow2) may grow to, in MiB. Throws where there is none. */
export function diskMib(path: string): number {
  const header = Buffer.alloc(32);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  // The size is the fourth field of the header, after the magic word, the version, and where the backing file's name is.
  if (header.toString("latin1", 0, 4) !== QCOW2) throw new Error(`${path} is no qcow2 disk`);
  return Math.ceil(Number(header.readBigUInt64BE(24)) / 1024 ** 2);
}
