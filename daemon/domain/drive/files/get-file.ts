/** file_get: a file of any size, streamed, or a range of it. */
import { fileGet } from "../../../../shared/api/drive.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { parsePath, pathRule, shownPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";
import { rangeOf } from "./range.ts";
import { sendFile } from "./send-file.ts";

export function getFile(drive: Drive): Bound {
  return bindDrive(drive, fileGet, {
    rules: (input) => pathRule("path", input.path),
    run: (call, input, place, transfer) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      return sendFile(call, place, path, transfer, (facts) => rangeOf(transfer.range, facts.size_bytes));
    },
  });
}
