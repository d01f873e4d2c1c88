/** Owns fs_read: up to 16 MiB of a file as JSON, or any part of it raw. */
import { fsRead, MAX_WRITE_BYTES } from "../../../shared/api/drive.ts";
import type { Bound } from "../../core/operation.ts";
import { textOf } from "../../core/text.ts";
import { guestPath, parsePath, pathRule, shownPath } from "./path.ts";
import { partOf, rangeOf } from "./range.ts";
import { sendFile } from "./send-file.ts";
import { bindDrive, type Drive } from "./verb.ts";

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
      await using file = place.root.file(path, "read");
      const { size_bytes, modified_at } = file.facts;
      const part = partOf(offset ?? 0, length ?? MAX_WRITE_BYTES, size_bytes);
      const bytes = await file.read(part.offset, Math.min(part.length, MAX_WRITE_BYTES));
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      call.audit.details = { path: shownPath(path), size_bytes: bytes.length, sha256 };
      return {
        outcome: "ok",
        body: {
          path: shownPath(path),
          guest_path: guestPath(path),
          size_bytes,
          offset: part.offset,
          length: bytes.length,
          eof: part.offset + bytes.length >= size_bytes,
          content: textOf(bytes),
          content_b64: bytes.toString("base64"),
          sha256,
          modified_at,
        },
      };
    },
  });
}
