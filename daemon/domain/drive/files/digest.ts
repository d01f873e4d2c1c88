/** The sha256 of existing files: for callers that expect a certain one, and for the result of an append. */
import { errnoOf, ServiceError } from "../../../core/service-error.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import type { Facts } from "../../../host/files/facts.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";
import type { DriveRoom } from "../deps.ts";
import type { DrivePath } from "../path.ts";
import type { Drive } from "../verb.ts";

/** The digest of a longer file costs more than the append, and the caller did not request it. */
const MAX_TOLD_BYTES = 64 * 1024 ** 2;

/** The digest of a file after an append; null if the file is long or the caller has gone: the appended data stays. */
export async function digestAfter(
  drive: Drive,
  file: OpenFile,
  { size_bytes }: Facts,
  { room, signal }: DigestRequest,
) {
  if (size_bytes > MAX_TOLD_BYTES) return null;
  try {
    return await file.digest(size_bytes, signal, drive.piecesOf(room));
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/** The room of the call, and the signal of its cancellation. */
interface DigestRequest {
  room: DriveRoom;
  signal: AbortSignal;
}

/** Throws precondition_failed when the file has another digest. */
export async function requireDigest(drive: Drive, file: OpenFile, expected: string, { room, signal }: DigestRequest) {
  requireHashable(file, room);
  const found = await file.digest(file.facts.size_bytes, signal, drive.piecesOf(room));
  // The digest may lack concurrent writes of a guest.
  if (file.freshFacts().version !== file.facts.version) {
    throw new ServiceError("precondition_failed", {
      detail: "The file changed while it was compared with if_match.",
    });
  }
  if (found !== expected.replace(/^"(.*)"$/, "$1").toLowerCase()) {
    throw new ServiceError("precondition_failed", {
      detail: "The file has changed: its sha256 differs from if_match.",
      details: { sha256: found },
    });
  }
}

/** The same for the file at `path`, opened as for reading; an absent file has no digest. */
export async function requireDigestAt(
  drive: Drive,
  root: Beneath,
  path: DrivePath,
  expected: string,
  request: DigestRequest,
) {
  await using file = openIfThere(root, path, "read");
  if (!file)
    throw new ServiceError("precondition_failed", { detail: "if_match was sent, but the file does not exist." });
  await requireDigest(drive, file, expected, request);
}

/** A guest's sparse file may claim any size; a file larger than the quota is not read. Throws file_too_large. */
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
