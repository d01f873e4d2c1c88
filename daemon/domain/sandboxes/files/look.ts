/** sandbox_file_list and sandbox_file_stat: listing and metadata. */
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { sandboxFileList, sandboxFileStat } from "../../../../shared/api/sandbox-files.ts";
import { makeCursor, readCursor } from "../../../core/call/cursor.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { listInGuest, statInGuest } from "../../../host/guest-link/files.ts";
import { shownEntry } from "./entry.ts";
import { parsePath, pathRule } from "./path.ts";
import { bindFiles, type FileDeps } from "./verb.ts";

export function makeListFiles(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileList, {
    kind: "list",
    rules: ({ path }) => pathRule("path", path),
    paths: ({ path }) => [parsePath(path)],
    run: async (call, input, { link }) => {
      const path = parsePath(input.path);
      call.audit.details = { path };
      const recursive = input.recursive ?? false;
      const kind = `files ${recursive ? "below" : "in"} ${path}`;
      const after_b64 = readCursor(kind, input.cursor);
      const limit = input.limit ?? DEFAULT_PAGE;
      const { entries, more } = await listInGuest(link, { path, recursive, after_b64, limit });
      const last = entries.at(-1);
      const next_cursor = more && last ? makeCursor(kind, belowOf(path, last)) : null;
      return { outcome: "ok", body: { path, items: entries.map(shownEntry), next_cursor } };
    },
  });
}

export function makeStatFile(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileStat, {
    rules: ({ path }) => pathRule("path", path),
    paths: ({ path }) => [parsePath(path)],
    run: async (call, input, { link }) => {
      const path = parsePath(input.path);
      call.audit.details = { path };
      return { outcome: "ok", body: shownEntry(await statInGuest(link, { path, follow: input.follow ?? false })) };
    },
  });
}

/** An entry's path below the directory, in bytes. */
function belowOf(directory: string, { path, path_b64 }: { path: string; path_b64?: string }): string {
  const bytes = path_b64 === undefined ? Buffer.from(path) : Buffer.from(path_b64, "base64");
  const above = directory === "/" ? 1 : Buffer.byteLength(directory) + 1;
  return bytes.subarray(above).toString("base64");
}
