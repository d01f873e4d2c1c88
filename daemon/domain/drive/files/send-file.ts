/** A file of the drive as the response itself: its validator, the requested part, its bytes as a stream. */
import type { BytesReply, Call, Transfer } from "../../../core/call/operation.ts";
import type { Facts } from "../../../host/files/facts.ts";
import { fileStream } from "../../../host/files/file-stream.ts";
import { etagOf, namesEtag } from "../etag.ts";
import { type DrivePath, shownPath } from "../path.ts";
import type { OpenDrive } from "../verb.ts";
import type { FileRange } from "./range.ts";

interface FileReply {
  outcome: "ok";
  bytes?: BytesReply;
  unchanged?: { etag: string };
}

/** Throws path_not_found, is_directory, invalid_path and errors of `choose`. */
export async function sendFile(
  call: Call,
  { root }: OpenDrive,
  path: DrivePath,
  transfer: Pick<Transfer, "if_none_match">,
  choose: (facts: Facts) => FileRange,
): Promise<FileReply> {
  const file = root.file(path, "read");
  try {
    const { facts } = file;
    const etag = etagOf(facts);
    if (transfer.if_none_match !== null && namesEtag(transfer.if_none_match, etag)) {
      await file[Symbol.asyncDispose]();
      return { outcome: "ok", unchanged: { etag } };
    }
    const part = choose(facts);
    call.audit.details = {
      path: shownPath(path),
      size_bytes: facts.size_bytes,
      offset: part.offset,
      length: part.length,
    };
    const stream = fileStream(file, part.offset, part.length, call.signal);
    return {
      outcome: "ok",
      bytes: { ...part, stream, size_bytes: facts.size_bytes, etag, modified_at: facts.modified_at },
    };
  } catch (error) {
    await file[Symbol.asyncDispose]();
    throw error;
  }
}
