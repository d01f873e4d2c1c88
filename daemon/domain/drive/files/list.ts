/**
 * fs_list. Entries are in byte order, a directory before its content, so that a cursor is only the last path. Links are never followed
 * below the requested path, which may itself lead through them.
 *
 * Names that are not UTF-8 show with U+FFFD in them, with their bytes in `path_b64`, and cannot be requested by name.
 */
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { type DriveEntry, fsList } from "../../../../shared/api/drive.ts";
import { MAX_PATH_BYTES } from "../../../../shared/api/file-entries.ts";
import type { Bound } from "../../../core/call/operation.ts";
import type { PieceTurns } from "../../../core/loop/index.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import { HERE, joinRaw, type RawPath } from "../../../host/files/raw-path.ts";
import { readCursor, writeCursor } from "../cursor.ts";
import { describeEntry } from "../entry.ts";
import { meaning } from "../errors.ts";
import { parsePath, pathRule, shownPath, splitPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";
import { ListOrder } from "./list-order.ts";

const NOT_A_DIRECTORY = { ENOTDIR: ["invalid_path", "The path is not a directory."] } as const;

export function list(drive: Drive): Bound {
  return bindDrive(drive, fsList, {
    rules: (input) => pathRule("path", input.path),
    run: async (call, input, { root, room }) => {
      const path = parsePath(input.path ?? "/");
      call.audit.details = { path: shownPath(path) };
      const recursive = input.recursive ?? input.path === undefined;
      const listKey = `${recursive ? "tree" : "directory"} ${path}`;
      const after = input.cursor === undefined ? null : readCursor(listKey, input.cursor);
      using top = await meaning(NOT_A_DIRECTORY, () => root.directory(path));
      const { items, last } = await pageOf({
        top,
        path,
        recursive,
        after,
        limit: input.limit ?? DEFAULT_PAGE,
        pieces: drive.piecesOf(room, call.signal),
      });
      const next_cursor = last === null ? null : writeCursor(listKey, last);
      return { outcome: "ok", body: { path: shownPath(path), items, next_cursor } };
    },
  });
}

interface PageRequest {
  top: Beneath;
  path: RawPath;
  recursive: boolean;
  after: RawPath | null;
  limit: number;
  pieces: PieceTurns;
}

/** The entries of one page, and its last path if more follow. */
async function pageOf({ top, path, recursive, after, limit, pieces }: PageRequest) {
  const order = new ListOrder(top, MAX_PATH_BYTES - path.length - 2, pieces);
  const items: DriveEntry[] = [];
  let last = after;
  // Reads one more than the page holds, to detect another page.
  if (after === null) await order.enter(HERE, limit + 1);
  else await order.seek(after, recursive, limit + 1);
  while (items.length < limit) {
    const turn = pieces.next();
    if (turn) await turn;
    const next = order.take();
    if (next === undefined) break;
    last = next;
    const entry = await describeBelow(top, next, joinRaw(path, next));
    if (!entry) continue;
    items.push(entry);
    if (recursive && entry.type === "directory") await order.enter(next, limit - items.length + 1);
  }
  return { items, last: order.more ? last : null };
}

async function describeBelow(top: Beneath, below: RawPath, path: RawPath): Promise<DriveEntry | null> {
  const { parent, name } = splitPath(below);
  using directory = top.plainDirectory(parent);
  return directory && (await describeEntry(directory, name, path));
}
