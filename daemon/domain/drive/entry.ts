/** An entry of the drive in API responses. */
import { isUtf8 } from "node:buffer";
import type { DriveEntry } from "../../../shared/api/drive.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { Beneath } from "../../host/files/beneath.ts";
import type { Facts } from "../../host/files/facts.ts";
import { ifThere, isGone } from "../../host/files/gone.ts";
import { HERE, type RawPath, toText } from "../../host/files/raw-path.ts";
import { type DrivePath, guestPath, shownPath, splitPath } from "./path.ts";

export type PlacedEntry = DriveEntry & { guest_path: string };

/** The entry `name` of `directory`; `path` is the entry's path. Links are not followed; null if the entry is absent. */
export async function describeEntry(directory: Beneath, name: RawPath, path: DrivePath): Promise<DriveEntry | null> {
  const facts = directory.facts(name);
  if (!facts) return null;
  const entry = entryOf(facts, path);
  if (facts.type !== "symlink") return entry;
  try {
    return { ...entry, target: toText(await directory.linkTarget(name)) };
  } catch (error) {
    // EINVAL: no longer a link.
    if (isGone(error) || errnoOf(error) === "EINVAL") return null;
    throw error;
  }
}

/** The entry at `path`. Throws path_not_found. */
export async function describePath(root: Beneath, path: DrivePath): Promise<PlacedEntry> {
  const { parent, name } = path === HERE ? { parent: HERE, name: HERE } : splitPath(path);
  using directory = root.directory(parent);
  const entry = await describeEntry(directory, name, path);
  if (!entry) throw new ServiceError("path_not_found");
  return { guest_path: guestPath(path), ...entry };
}

/** An entry made from its facts; not for links. */
export function entryOf(facts: Facts, path: DrivePath): DriveEntry {
  return {
    path: shownPath(path),
    ...bytesOf(path),
    name: path === HERE ? "/" : toText(path.slice(path.lastIndexOf("/") + 1) as RawPath),
    type: facts.type,
    size_bytes: facts.size_bytes,
    mode: shownMode(facts),
    modified_at: facts.modified_at,
  };
}

/** The path's bytes if its text is lossy: no call finds the entry by that text. */
function bytesOf(path: DrivePath): { path_b64?: string } {
  const bytes = Buffer.from(path, "latin1");
  return isUtf8(bytes) ? {} : { path_b64: Buffer.concat([Buffer.from("/"), bytes]).toString("base64") };
}

/** The entry at `path` now, a link in the last component not followed; null if absent. */
export function factsAt(root: Beneath, path: DrivePath): Facts | null {
  const { parent, name } = splitPath(path);
  using directory = ifThere(() => root.directory(parent));
  return directory?.facts(name) ?? null;
}

/** Permissions as text: `0644`. */
export function shownMode(facts: Facts): string {
  return facts.mode.toString(8).padStart(4, "0");
}

/** Permissions as a number; the schema has validated the text. */
export function parseMode(mode: string | undefined, absent: number): number {
  return mode === undefined ? absent : Number.parseInt(mode, 8);
}

export const FILE_MODE = 0o644;
export const DIRECTORY_MODE = 0o755;
