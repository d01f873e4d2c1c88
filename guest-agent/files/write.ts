/**
 * The method `file_write`: replaces a file atomically, by a temporary file, fsync and rename. A symbolic link as the last path component is
 * followed. A file that a rename cannot replace, for example below /proc or a mount point, is written in place.
 */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, type FileHandle, link, open, realpath, rename, unlink } from "node:fs/promises";
import {
  FILE_WINDOW_BYTES,
  type FileAnswer,
  type FileEntry,
  type FileWritable,
} from "../../shared/agent-protocol/files.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { makeDirectories } from "./directories.ts";
import { entryAt, entryIfThere } from "./entry.ts";
import { errnoOf, FileError, FileRefusal } from "./file-error.ts";
import { modeOf, type Owner, ownerOf, usualOwner } from "./owner.ts";
import { joined, parentOf, parsePath } from "./path.ts";

const FILE_MODE = 0o644;
/** Size of one write while more follow: each write is a task of the thread pool. */
const WRITE_BYTES = 256 * 1024;
const BLOCK_BYTES = WRITE_BYTES + FILE_WINDOW_BYTES;
/** Errors of creating a temporary file in a directory in which the file itself may still be writable. */
const NO_TEMPORARY = ["EACCES", "EPERM", "EROFS", "ENOENT", "EINVAL", "EOPNOTSUPP"];
/** The file is itself a mount point, or is on another file system than its directory. */
const NO_RENAME = ["EBUSY", "EXDEV"];

export async function writeFile(stream: Stream, request: object): Promise<void> {
  const { path, mode, owner, overwrite, expect } = request as Record<string, unknown>;
  const owned = ownerOf(owner);
  const conditions = { mode: modeOf(mode), overwrite: overwrite === true, expect };
  const { target, before } = await targetOf(parsePath(path), owned ?? usualOwner());
  requireReplaceable(before, conditions);
  const part = await openPart(target, before);
  try {
    stream.widenIncoming(Channel.stdin, FILE_WINDOW_BYTES);
    const writable: FileWritable = { type: "writable", window_bytes: FILE_WINDOW_BYTES };
    stream.say(writable);
    await fill(part.file, stream);
    // The stream ended before the host had sent the whole file.
    if (stream.ended) return;
    const as = owned ?? (before ? { uid: before.uid, gid: before.gid } : usualOwner());
    if (part.path) {
      await part.file.chown(as.uid, as.gid);
      await part.file.chmod(conditions.mode ?? before?.mode ?? FILE_MODE);
      await part.file.sync();
    }
    const created = part.path ? await place(part.path, target, conditions) : false;
    part.path = null;
    const answer: FileAnswer = { entry: await entryAt(target), created };
    stream.finish(answer);
  } finally {
    await part.file.close();
    if (part.path) await unlink(part.path).catch(() => {});
  }
}

interface WriteConditions {
  overwrite: boolean;
  expect: unknown;
}

/** The destination and its current entry. Creates the parent directories. */
async function targetOf(path: Buffer, owner: Owner): Promise<{ target: Buffer; before: FileEntry | null }> {
  if (path.byteLength === 1) throw new FileError("EISDIR");
  await makeDirectories(parentOf(path), owner);
  const before = await entryIfThere(path);
  if (before?.type !== "symlink") return { target: path, before };
  const target = await realpath(path, { encoding: "buffer" });
  return { target, before: await entryAt(target) };
}

function requireReplaceable(before: FileEntry | null, { overwrite, expect }: WriteConditions): void {
  if (expect !== undefined && (before?.version ?? null) !== expect) {
    throw new FileRefusal(StreamErrorCode.file_changed, "the file has been replaced");
  }
  if (before?.type === "directory") throw new FileError("EISDIR");
  if (before?.type === "other") throw new FileError("ENXIO");
  if (before && !overwrite) throw new FileError("EEXIST");
}

/** The file that collects the bytes; `path` is null if it is the target itself. */
async function openPart(target: Buffer, before: FileEntry | null): Promise<{ file: FileHandle; path: Buffer | null }> {
  const path = joined(parentOf(target), temporaryName());
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;
  try {
    return { file: await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600), path };
  } catch (error) {
    if (!before || !NO_TEMPORARY.includes(errnoOf(error) ?? "")) throw error;
  }
  return { file: await open(target, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY), path: null };
}

function temporaryName(): string {
  return `.roomd-${randomBytes(12).toString("hex")}.part`;
}

/** Renames the finished file to its destination and syncs the directory. Returns whether the destination was new. */
async function place(part: Buffer, target: Buffer, conditions: WriteConditions): Promise<boolean> {
  const now = await entryIfThere(target);
  requireReplaceable(now, conditions);
  if (conditions.overwrite) {
    try {
      await rename(part, target);
    } catch (error) {
      if (!now || !NO_RENAME.includes(errnoOf(error) ?? "")) throw error;
      await copyFile(part, target);
      await unlink(part);
    }
  } else {
    // rename(2) would replace a file that another process created since the check.
    await link(part, target);
    await unlink(part);
  }
  await syncDirectory(parentOf(target));
  return now === null;
}

export async function syncDirectory(path: Buffer): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } catch (error) {
    // Not every file system can.
    if (errnoOf(error) !== "EINVAL") throw error;
  } finally {
    await directory.close();
  }
}

/** Buffers of the last write, for reuse: without KVM a fresh memory page costs more than copying its bytes. */
let spare: [Buffer, Buffer] | null = null;

/** Collects arriving bytes in one buffer while the other is written. */
async function fill(file: FileHandle, stream: Stream): Promise<void> {
  let [block, other] = spare ?? [Buffer.allocUnsafeSlow(BLOCK_BYTES), Buffer.allocUnsafeSlow(BLOCK_BYTES)];
  spare = null;
  let filled = 0;
  let pendingCredit = 0;
  let writing: Promise<void> | null = null;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  // The host's window always fits into the buffer.
  const giveBack = () => {
    if (filled > BLOCK_BYTES - FILE_WINDOW_BYTES) return;
    stream.giveBack(Channel.stdin, pendingCredit);
    pendingCredit = 0;
  };
  const flush = async (least: number) => {
    while (filled > least) {
      const bytes = block.subarray(0, filled);
      [block, other] = [other, block];
      filled = 0;
      giveBack();
      await writeAll(file, bytes);
    }
    writing = null;
  };
  const arrived = stream.passTo(Channel.stdin, (bytes) => {
    block.set(bytes, filled);
    filled += bytes.byteLength;
    pendingCredit += bytes.byteLength;
    giveBack();
    if (filled >= WRITE_BYTES) writing ??= flush(WRITE_BYTES - 1).catch(failure.reject);
  });
  await Promise.race([failure.promise, arrived]);
  await Promise.race([failure.promise, writing]);
  await flush(0);
  // After a failure, bytes may still arrive in the buffers.
  spare = [block, other];
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done);
    if (bytesWritten === 0) throw new FileError("EIO");
    done += bytesWritten;
  }
}
