/** The methods `file_mkdir`, `file_move` and `file_remove`. */
import { randomBytes } from "node:crypto";
import { cp, lstat, rename, rm, rmdir, unlink } from "node:fs/promises";
import type { FileAnswer } from "../../shared/agent-protocol/files.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { makeDirectories } from "./directories.ts";
import { entryAt, entryIfThere } from "./entry.ts";
import { errnoOf, FileError } from "./file-error.ts";
import { modeOf, ownerOf, usualOwner } from "./owner.ts";
import { joined, parentOf, parsePath } from "./path.ts";
import { syncDirectory } from "./write.ts";

export async function makeDirectory(stream: Stream, request: object): Promise<void> {
  const { path: requestedPath, mode, owner } = request as Record<string, unknown>;
  const path = parsePath(requestedPath);
  const there = await entryIfThere(path, true);
  if (there && there.type !== "directory") throw new FileError("EEXIST");
  const created = await makeDirectories(path, ownerOf(owner) ?? usualOwner(), modeOf(mode) ?? undefined);
  if (created) await syncDirectory(parentOf(path));
  const answer: FileAnswer = { entry: await entryAt(path, true), created };
  stream.finish(answer);
}

export async function move(stream: Stream, request: object): Promise<void> {
  const fields = request as Record<string, unknown>;
  const [from, to] = [parsePath(fields.from, "from"), parsePath(fields.to, "to")];
  const moved = await entryAt(from);
  await makeDirectories(parentOf(to), usualOwner());
  const there = await entryIfThere(to);
  if (there && fields.overwrite !== true) throw new FileError("EEXIST");
  try {
    await rename(from, to);
  } catch (error) {
    const errno = errnoOf(error);
    // rename(2) of a directory onto an entry of another type.
    if (errno === "ENOTDIR" && moved.type === "directory") throw new FileError("EEXIST");
    if (errno !== "EXDEV") throw error;
    await moveAcross(from, to);
  }
  await syncDirectory(parentOf(to));
  await syncDirectory(parentOf(from)).catch(() => {});
  const answer: FileAnswer = { entry: await entryAt(to) };
  stream.finish(answer);
}

/** To another file system: a temporary copy next to the target, renamed once it is complete. */
async function moveAcross(from: Buffer, to: Buffer): Promise<void> {
  const [source, part] = [from.toString(), joined(parentOf(to), `.roomd-${randomBytes(12).toString("hex")}.part`)];
  try {
    await cp(source, part.toString(), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    await rename(part, to);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  }
  await rm(from, { recursive: true });
}

/** `isMount`: a mount point is never removed. */
export async function remove(stream: Stream, request: object, isMount: (path: string) => boolean): Promise<void> {
  const { path: requestedPath, recursive } = request as Record<string, unknown>;
  const path = parsePath(requestedPath);
  if (path.byteLength === 1 || isMount(path.toString())) throw new FileError("EBUSY");
  const facts = await lstat(path);
  if (!facts.isDirectory()) await unlink(path);
  else if (recursive === true) await rm(path, { recursive: true });
  else await rmdir(path);
  await syncDirectory(parentOf(path)).catch(() => {});
  stream.finish(null);
}
