/**
 * A copy of the database while the service writes: the file, then its log, which is kept from restarting during the copy; both are merged
 * into one file.
 *
 *   XFS, btrfs    reflinks: no time and no space
 *   elsewhere     copied in pieces, if there is space, and as long as the log stays within its bound
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, rmSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { nextTurn } from "../../core/concurrency/next-turn.ts";
import type { Config } from "../../core/config/config.ts";
import { completeCopy, holdLog } from "../../db/copy.ts";
import { copyPieces, shareBlocks } from "../../host/files/clone.ts";
import { CliError } from "../kit/cli-error.ts";
import { bytesText } from "../kit/output.ts";

const MIB = 1024 ** 2;
/** Length of the log's header, which has the salts; they change at each restart of the log. */
const LOG_HEADER_BYTES = 32;
/** Bytes of the copy that may be unsynced: a flush of the service's log may have to wait for them. */
const MAX_UNSYNCED_BYTES = 16 * MIB;
/** Upper limit of limits.disk_free_mib, as a share of the disk. */
const MAX_FREE_SHARE = 1 / 8;

export type CopyBounds = Pick<Config, "backup.log_mib" | "limits.disk_free_mib">;

/** Resolves when the copy is on disk. Throws CliError without space or if the log is too long; then nothing of it remains. */
export async function copyDatabase(file: string, to: string, bounds: CopyBounds): Promise<void> {
  const from = openSync(file, "r");
  try {
    const held = holdLog(file);
    const requireBounds = (bytes = 0) => {
      requireSpace(dirname(to), bytes, bounds["limits.disk_free_mib"]);
      requireShort(held.bytes(), bounds["backup.log_mib"]);
    };
    try {
      await copyFile(from, to, () => fstatSync(from).size, requireBounds);
      await copyLog(`${file}-wal`, `${to}-wal`, held.bytes, requireBounds);
    } finally {
      held.release();
    }
    completeCopy(to);
  } catch (error) {
    for (const end of ["", "-wal", "-shm"]) rmSync(`${to}${end}`, { force: true });
    throw error;
  } finally {
    // Closed only now: closing the file releases all locks of this process on it.
    closeSync(from);
  }
  syncFile(to);
}

/** Copies the log. A fully checkpointed log may restart once in spite of the hold on it: then it is copied again. */
async function copyLog(
  path: string,
  to: string,
  size: () => number,
  requireBounds: (bytes?: number) => void,
): Promise<void> {
  const log = openSync(path, "r");
  const header = () => {
    const bytes = Buffer.alloc(LOG_HEADER_BYTES);
    return bytes.toString("hex", 0, readSync(log, bytes, 0, LOG_HEADER_BYTES, 0));
  };
  try {
    for (let before = ""; ; ) {
      before = header();
      rmSync(to, { force: true });
      await copyFile(log, to, size, requireBounds);
      if (header() === before) return;
    }
  } finally {
    closeSync(log);
  }
}

async function copyFile(
  from: number,
  to: string,
  size: () => number,
  requireBounds: (bytes?: number) => void,
): Promise<void> {
  const into = openSync(to, "wx", 0o600);
  try {
    // Synced first: otherwise the kernel writes dirty pages while it shares blocks, with the file locked.
    fdatasyncSync(from);
    if (shareBlocks(from, into)) return;
    const bytes = size();
    requireBounds(bytes);
    let unsynced = 0;
    for (const copied of copyPieces(from, into, bytes)) {
      unsynced += copied;
      if (unsynced >= MAX_UNSYNCED_BYTES) {
        fdatasyncSync(into);
        unsynced = 0;
      }
      requireBounds();
      await nextTurn();
    }
    fdatasyncSync(into);
  } finally {
    closeSync(into);
  }
}

function syncFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Requires that limits.disk_free_mib remain free after the copy: with less free space the service rejects additions. */
function requireSpace(directory: string, bytes: number, freeMib: number): void {
  const { bavail, blocks, bsize } = statfsSync(directory);
  const needed = bytes + Math.min(freeMib * MIB, blocks * bsize * MAX_FREE_SHARE);
  if (bavail * bsize >= needed) return;
  throw new CliError({
    detail: `The database was not copied: ${directory} has ${bytesText(bavail * bsize)} of free space, and ${bytesText(needed)} are needed.`,
    errors: [],
    hint: "Free some space, or move data_dir to XFS or btrfs, on which a copy takes no space.",
  });
}

function requireShort(bytes: number, mostMib: number): void {
  if (bytes <= mostMib * MIB) return;
  throw new CliError({
    detail: `The database was not copied: during the copy its log grew to ${bytesText(bytes)}, and backup.log_mib is ${mostMib}.`,
    errors: [],
    hint: "Retry at a time with fewer writes, raise backup.log_mib, or move data_dir to XFS or btrfs, on which a copy takes no time.",
  });
}
