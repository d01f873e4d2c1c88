/** Maps failed system calls to errors of the API. */
import type { ErrorCode } from "../../../shared/api/errors.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";

export type Meaning = readonly [code: ErrorCode, detail?: string];

const MEANINGS: Record<string, Meaning> = {
  ENOENT: ["path_not_found"],
  ENOTDIR: ["path_not_found", "A part of the path is not a directory."],
  EXDEV: ["path_escapes_drive"],
  EISDIR: ["is_directory"],
  EEXIST: ["already_exists"],
  ENOTEMPTY: ["not_empty"],
  ENOSPC: ["disk_full"],
  EDQUOT: ["drive_full"],
  ENXIO: ["invalid_path", "The path is neither a file nor a directory."],
  ELOOP: ["invalid_path", "The links in the path form a loop."],
  ENAMETOOLONG: ["invalid_path", "The path is too long."],
  EINVAL: ["invalid_path", "The path cannot be used in this way."],
  EMLINK: ["invalid_path", "The directory cannot hold more directories."],
  EFBIG: ["file_too_large"],
  EACCES: ["invalid_path", "The host is not allowed to use this path."],
  EPERM: ["invalid_path", "The host is not allowed to use this path."],
  EAGAIN: ["not_ready", "The drive is changing too fast."],
  EMFILE: ["not_ready", "The host has too many files open."],
  ENFILE: ["not_ready", "The host has too many files open."],
};

/** Maps an error to its meaning for the caller; an error without one is returned unchanged, and is a bug. */
export function driveError(error: unknown, own: Record<string, Meaning> = {}): unknown {
  const errno = errnoOf(error);
  if (error instanceof ServiceError || errno === null) return error;
  const meaning = own[errno] ?? MEANINGS[errno];
  if (!meaning) return error;
  const [code, detail] = meaning;
  return new ServiceError(code, { ...(detail === undefined ? {} : { detail }), cause: error });
}

/** Runs `work`; if it fails, the errno codes in `own` have their own meaning. */
export async function meaning<T>(own: Record<string, Meaning>, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw driveError(error, own);
  }
}
