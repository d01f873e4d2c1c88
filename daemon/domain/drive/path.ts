/**
 * Spellings of paths. `x`, `/x`, `mnt/drive/x` and `/mnt/drive/x` are one file; inside roomd and in responses it is `/x`. A path that
 * itself begins with /mnt/drive on the drive is written with the mount in front, so that it can be sent back.
 */
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import { MAX_PATH_BYTES } from "../../../shared/api/file-entries.ts";
import type { RuleBreak } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { HERE, type RawPath, toRaw, toText } from "../../host/files/raw-path.ts";
import { isTemporaryName } from "../../host/files/temporary.ts";

/** A path beneath the root of a drive, in bytes: `a/b`, or `.` for the root. */
export type DrivePath = RawPath;

const MAX_NAME_BYTES = 255;

/** Throws invalid_path. */
export function parsePath(text: string): DrivePath {
  const problem = problemOf(text);
  if (problem !== null) throw new ServiceError("invalid_path", { detail: problem });
  return toRaw(componentsOf(text).join("/") || HERE);
}

/** Rule for a path field; an absent field breaks none. */
export function pathRule(field: string, text: string | undefined): RuleBreak[] {
  const problem = text === undefined ? null : problemOf(text);
  return problem === null ? [] : [{ field, code: "invalid_path", message: problem }];
}

/** As answers spell it. */
export function shownPath(path: DrivePath): string {
  const text = path === HERE ? "/" : `/${toText(path)}`;
  return text === DRIVE_MOUNT || text.startsWith(`${DRIVE_MOUNT}/`) ? DRIVE_MOUNT + text : text;
}

/** The path in a guest's file system. */
export function guestPath(path: DrivePath): string {
  return path === HERE ? DRIVE_MOUNT : `${DRIVE_MOUNT}/${toText(path)}`;
}

/** Splits a path into its parent directory and last component. Throws invalid_path for the root, which has neither. */
export function splitPath(path: DrivePath): { parent: DrivePath; name: RawPath } {
  if (path === HERE) throw new ServiceError("invalid_path", { detail: "The path is the drive itself." });
  const slash = path.lastIndexOf("/");
  if (slash < 0) return { parent: HERE, name: path };
  return { parent: path.slice(0, slash) as RawPath, name: path.slice(slash + 1) as RawPath };
}

function componentsOf(text: string): string[] {
  const all = text.split("/").filter((component) => component !== "" && component !== ".");
  const mounted = `/${all.slice(0, 2).join("/")}` === DRIVE_MOUNT;
  return mounted ? all.slice(2) : all;
}

function problemOf(text: string): string | null {
  if (text === "") return "The path is empty.";
  if (!text.isWellFormed()) return "The path is not Unicode text.";
  if (text.includes("\0")) return "The path contains a NUL.";
  if (Buffer.byteLength(text) > MAX_PATH_BYTES) return `The path is over ${MAX_PATH_BYTES} bytes.`;
  for (const component of componentsOf(text)) {
    if (component === "..") return 'The path contains "..".';
    if (Buffer.byteLength(component) > MAX_NAME_BYTES) return `A name in the path is over ${MAX_NAME_BYTES} bytes.`;
    if (isTemporaryName(component)) return "The path contains a name that roomd reserves.";
  }
  return null;
}
