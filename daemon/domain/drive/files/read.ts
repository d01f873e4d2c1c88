/** fs_read: up to 16 MiB of a file as JSON, or any part of it raw. */
import { fsRead, MAX_WRITE_BYTES } from "../../../../shared/api/drive.ts";
import type { Bound, Call } from "../../../core/call/operation.ts";
import { textOf } from "../../../core/text.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";
import { type DrivePath, guestPath, parsePath, pathRule, shownPath } from "../path.ts";
import { bindDrive, type Drive, type OpenDrive } from "../verb.ts";
import { longAnswer, lookThrough } from "./long-read.ts";
import { type FileRange, partOf, rangeOf } from "./range.ts";
import { sendFile } from "./send-file.ts";

/** Up to this size a response is made in one turn. */
const SHORT_BYTES = 64 * 1024;

export function read(drive: Drive): Bound {
  return bindDrive(drive, fsRead, {
    rules: (input) => pathRule("path", input.path),
    run: async (call, input, place, transfer) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      const { offset, length } = input;
      if (input.format === "raw") {
        // Raw streams, so without a length there is no reason to stop before the end.
        return await sendFile(call, place, path, transfer, ({ size_bytes }) =>
          offset === undefined && length === undefined
            ? rangeOf(transfer.range, size_bytes)
            : partOf(offset ?? 0, length ?? size_bytes, size_bytes),
        );
      }
      const file = place.root.file(path, "read");
      let isKept = false;
      try {
        const part = partOf(offset ?? 0, Math.min(length ?? MAX_WRITE_BYTES, MAX_WRITE_BYTES), file.facts.size_bytes);
        if (part.length <= SHORT_BYTES) return { outcome: "ok", body: await shortBody(call, file, path, part) };
        const bytes = await longBytes(drive, place, call, file, path, part);
        isKept = true;
        return { outcome: "ok", stream: { type: "application/json", bytes } };
      } finally {
        if (!isKept) await file[Symbol.asyncDispose]();
      }
    },
  });
}

async function shortBody(call: Call, file: OpenFile, path: DrivePath, part: FileRange) {
  const bytes = await file.read(part.offset, part.length);
  const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  call.audit.details = { path: shownPath(path), size_bytes: bytes.length, sha256 };
  return {
    ...placeOf(file, path, part.offset, bytes.length),
    content: textOf(bytes),
    content_b64: bytes.toString("base64"),
    sha256,
    modified_at: file.facts.modified_at,
  };
}

async function longBytes(
  drive: Drive,
  { room }: OpenDrive,
  call: Call,
  file: OpenFile,
  path: DrivePath,
  part: FileRange,
) {
  const { signal } = call;
  const long = await lookThrough(file, part, drive.piecesOf(room), signal);
  const { sha256, length } = long;
  call.audit.details = { path: shownPath(path), size_bytes: length, sha256 };
  const before = placeOf(file, path, part.offset, length);
  return longAnswer(file, long, { before, after: { sha256, modified_at: file.facts.modified_at } }, signal);
}

function placeOf({ facts: { size_bytes } }: OpenFile, path: DrivePath, offset: number, length: number) {
  const place = { path: shownPath(path), guest_path: guestPath(path), size_bytes };
  return { ...place, offset, length, eof: offset + length >= size_bytes };
}
