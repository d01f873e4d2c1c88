/** An entry of a sandbox's file system in the format of the API. */
import type { FileEntry } from "../../../../shared/agent-protocol/files.ts";
import type { SandboxFileEntry } from "../../../../shared/api/sandbox-files.ts";
import { at } from "../../../core/clock.ts";

export function shownEntry(entry: FileEntry): SandboxFileEntry {
  const { path, path_b64, type, size_bytes, uid, gid, target } = entry;
  return {
    path,
    ...(path_b64 === undefined ? {} : { path_b64 }),
    name: path === "/" ? "/" : path.slice(path.lastIndexOf("/") + 1),
    type,
    size_bytes,
    mode: shownMode(entry),
    uid,
    gid,
    modified_at: at(entry.modified_at_ms),
    ...(target === undefined ? {} : { target }),
  };
}

/** Permissions as text: `0644`. */
export function shownMode({ mode }: Pick<FileEntry, "mode">): string {
  return mode.toString(8).padStart(4, "0");
}

/** Permission bits of validated text; null if absent. */
export function modeOf(mode: string | undefined): number | null {
  return mode === undefined ? null : Number.parseInt(mode, 8);
}

/** A strong validator: identifies the file and each change of it. */
export function etagOf({ version }: Pick<FileEntry, "version">): string {
  return `"${new Bun.CryptoHasher("sha256").update(version).digest("base64url").slice(0, 27)}"`;
}
