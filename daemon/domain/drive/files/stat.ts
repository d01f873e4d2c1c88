/** fs_stat: one entry; a link is described itself. */
import { fsStat } from "../../../../shared/api/drive.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { describePath } from "../entry.ts";
import { parsePath, pathRule, shownPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";

export function stat(drive: Drive): Bound {
  return bindDrive(drive, fsStat, {
    rules: (input) => pathRule("path", input.path),
    run: async (call, input, { root }) => {
      const path = parsePath(input.path);
      call.audit.details = { path: shownPath(path) };
      return { outcome: "ok", body: await describePath(root, path) };
    },
  });
}
