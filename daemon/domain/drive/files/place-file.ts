/**
 * Atomic write of a whole file to the drive: temporary file, fsync, rename. Readers see the old file or the new one, and acknowledged data
 * is on the disk. Of two concurrent writers the last to finish wins, whole.
 *
 * A link in the last path component is replaced, never written through: to follow it would put the file at another path.
 */
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import type { Facts } from "../../../host/files/facts.ts";
import { Hash } from "../../../host/files/hash.ts";
import { CHUNK_BYTES, type GuestOwner } from "../../../host/files/open-file.ts";
import { HERE, type RawPath } from "../../../host/files/raw-path.ts";
import { Temporary, temporaryName } from "../../../host/files/temporary.ts";
import { shownMode } from "../entry.ts";
import { type DrivePath, guestPath, shownPath, splitPath } from "../path.ts";
import type { Amount } from "../quota/measure.ts";
import type { Drive, OpenDrive } from "../verb.ts";
import { openOrMake } from "./parents.ts";

export interface NewFile {
  path: DrivePath;
  mode: number;
  /** Owner of the file and of directories created for it; root of the guests if absent. */
  owner?: GuestOwner | undefined;
  overwrite: boolean;
  /** Number of bytes, if known: then the whole of their quota is reserved before the first byte. */
  size_bytes?: number;
  /** Passes all bytes to `write` in order, and awaits each call; stops when `over` aborts. */
  fill(write: (bytes: Uint8Array) => Promise<void>, over: AbortSignal): Promise<void>;
  /** Checks whether the file may still be replaced; no other call writes to this name during it. */
  check?(): Promise<void>;
}

/**
 * Throws is_directory, already_exists, invalid_path, drive_full, quota_exceeded, disk_full, room_destroying and the errors of `fill` and
 * `check`.
 */
export async function placeFile(
  drive: Pick<Drive, "turns" | "stillness">,
  { room, root, usage }: OpenDrive,
  file: NewFile,
) {
  if (file.path === HERE) throw new ServiceError("is_directory");
  const { parent, name } = splitPath(file.path);
  using directory = (await openOrMake(drive, { room, root }, parent, { owner: file.owner })).directory;
  const before = mayBeReplaced(directory, name, file.overwrite);
  using claim = await usage.claim(room.drive_limit_bytes, before === null ? 1 : 0);
  claim.grow(file.size_bytes ?? 0, freedBy(before).used_bytes);
  await using temporary = new Temporary(directory, temporaryName());
  claim.makes(temporary.inode);
  let size = 0;
  using hash = new Hash();
  const { over } = claim;
  const pieces = new Pieces(loopTime, ownerOf(room.org_id), "body");
  const write = async (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.byteLength; at += CHUNK_BYTES) {
      // A part of the body may have many chunks.
      if (at > 0) await pieces.next();
      over.throwIfAborted();
      const chunk = bytes.subarray(at, at + CHUNK_BYTES);
      size += chunk.byteLength;
      if (size > claim.bytes) claim.grow(size - claim.bytes, freedBy(before).used_bytes);
      await Promise.all([hash.add(chunk), temporary.write(chunk)]);
      claim.written_bytes = size;
    }
  };
  await file.fill(write, over).catch((error: unknown) => {
    throw over.aborted ? over.reason : error;
  });
  await temporary.finish(file.mode, file.owner);
  const { facts, replaced } = await drive.turns.take(turnKey(directory, name), () =>
    drive.stillness.passing({ room, root }, async () => {
      const replaced = mayBeReplaced(directory, name, file.overwrite);
      await file.check?.();
      over.throwIfAborted();
      return { replaced, facts: await temporary.place(name, file.overwrite ? "replace" : "refuse") };
    }),
  );
  const added = { used_bytes: facts.allocated_bytes, file_count: 1, entry_count: 1 };
  claim.settle({ added, freed: freedBy(replaced) });
  return written(file.path, facts, await hash.digest(), replaced === null, usage.org.warnings());
}

/** The answer to a write. */
export function written<Digest extends string | null>(
  path: DrivePath,
  facts: Facts,
  sha256: Digest,
  created: boolean,
  warnings: string[],
) {
  return {
    path: shownPath(path),
    guest_path: guestPath(path),
    size_bytes: facts.size_bytes,
    sha256,
    mode: shownMode(facts),
    modified_at: facts.modified_at,
    created,
    ...(warnings.length > 0 ? { warnings } : {}),
  };
}

/** Key of the lock for all changes of a name, independent of the path to it. */
export function turnKey(directory: Beneath, name: RawPath): string {
  return `${directory.ownFacts().identity}/${name}`;
}

function mayBeReplaced(directory: Beneath, name: RawPath, overwrite: boolean): Facts | null {
  const facts = directory.facts(name);
  if (facts?.type === "directory") throw new ServiceError("is_directory");
  if (facts?.type === "other") {
    throw new ServiceError("invalid_path", { detail: "The path is neither a file nor a directory." });
  }
  if (facts && !overwrite) throw new ServiceError("already_exists");
  return facts;
}

/** Space that the disk regains when the entry is deleted or replaced. */
export function freedBy(facts: Facts | null): Amount {
  if (!facts) return { used_bytes: 0, file_count: 0, entry_count: 0 };
  const isLast = facts.type === "directory" || facts.links === 1;
  return {
    used_bytes: isLast ? facts.allocated_bytes : 0,
    file_count: facts.type === "file" && isLast ? 1 : 0,
    entry_count: 1,
  };
}
