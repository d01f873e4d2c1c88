/** Owns the comparison of a file with the sha256 that a caller expects it to have. */
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { Beneath } from "../../host/files/beneath.ts";
import type { OpenFile } from "../../host/files/open-file.ts";
import type { DriveRoom } from "./deps.ts";
import type { DrivePath } from "./path.ts";

/** Throws precondition_failed when the file has another digest. */
export async function requireDigest(file: OpenFile, expected: string, room: DriveRoom, signal: AbortSignal) {
  requireHashable(file, room);
  const found = await file.digest(file.facts.size_bytes, signal);
  if (found !== expected.replace(/^"(.*)"$/, "$1").toLowerCase()) {
    throw new ServiceError("precondition_failed", {
      detail: "The file has changed: its sha256 differs from if_match.",
      details: { sha256: found },
    });
  }
}

/** The same for the file at `path`, as a reader would find it; a missing one has no digest. */
export async function requireDigestAt(
  root: Beneath,
  path: DrivePath,
  expected: string,
  room: DriveRoom,
  signal: AbortSignal,
) {
  await using file = openIfThere(root, path, "read");
  if (!file)
    throw new ServiceError("precondition_failed", { detail: "if_match was sent, but the file does not exist." });
  await requireDigest(file, expected, room, signal);
}

/** A guest's file of holes may claim any size; more than the quota is not read through. Throws file_too_large. */
export function requireHashable(file: OpenFile, room: DriveRoom): void {
  if (file.facts.size_bytes > room.drive_limit_bytes) {
    throw new ServiceError("file_too_large", { detail: "The file claims to be larger than the drive's quota." });
  }
}

export function openIfThere(root: Beneath, path: DrivePath, access: "read" | "append"): OpenFile | null {
  try {
    return root.file(path, access);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}
