/**
 * Appending to a file: in place, with O_APPEND, then fsync. A rewrite under a new name would lose data that a guest appends concurrently
 * through its own descriptor.
 *
 * Acknowledged data is on the disk; space is allocated first, so that a full disk adds nothing. A reader may see the file while it grows,
 * and a crash may leave part of an append that was never acknowledged.
 *
 * A link in the last path component is followed, as far as it stays on the drive.
 */

import type { KeyCall } from "../../../core/call/operation.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { GuestOwner } from "../../../host/files/open-file.ts";
import { HERE } from "../../../host/files/raw-path.ts";
import { type DrivePath, splitPath } from "../path.ts";
import type { Drive, OpenDrive } from "../verb.ts";
import { digestAfter, openIfThere, requireDigest, requireHashable } from "./digest.ts";
import { restOf } from "./idempotent-append.ts";
import { openOrMake } from "./parents.ts";
import { turnKey, written } from "./place-file.ts";

export interface Addition {
  path: DrivePath;
  bytes: Uint8Array;
  /** Null leaves the file's own. */
  mode: number | null;
  /** Undefined leaves the file's own. */
  owner: GuestOwner | undefined;
  if_match: string | undefined;
  call: KeyCall;
}

/**
 * Appends to the file; null if it is absent. Throws precondition_failed, is_directory, drive_full, quota_exceeded, disk_full,
 * room_destroying.
 */
export async function appendToFile(drive: Drive, { room, root, usage }: OpenDrive, addition: Addition) {
  const { path, mode, owner, if_match, call } = addition;
  if (path === HERE) throw new ServiceError("is_directory");
  const { parent, name } = splitPath(path);
  using directory = (await openOrMake(drive, { room, root }, parent, { owner })).directory;
  return await drive.turns.take(turnKey(directory, name), async () => {
    await using file = openIfThere(root, path, "append");
    if (!file) return null;
    requireHashable(file, room);
    const request = { room, signal: call.signal };
    const bytes = await restOf(file, addition.bytes, call.work);
    const isBegun = bytes.byteLength < addition.bytes.byteLength;
    if (if_match !== undefined && !isBegun) await requireDigest(drive, file, if_match, request);
    using claim = await usage.claim(room.drive_limit_bytes, 0);
    claim.grow(bytes.byteLength, 0);
    await drive.stillness.passing({ room, root }, async () => {
      file.reserve(bytes.byteLength);
      await file.write(bytes);
      await faultPoint("append.written");
      if (owner) file.setOwner(owner);
      if (mode !== null) file.setMode(mode);
      await file.sync();
      await faultPoint("append.synced");
    });
    const facts = file.freshFacts();
    const grown = facts.allocated_bytes - file.facts.allocated_bytes;
    claim.settle(grown > 0 ? { added: { used_bytes: grown } } : { freed: { used_bytes: -grown } });
    return written(path, facts, await digestAfter(drive, file, facts, request), false, usage.org.warnings());
  });
}
