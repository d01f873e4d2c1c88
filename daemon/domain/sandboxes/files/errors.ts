/** Maps a guest's errors about files to the error codes of the corresponding drive calls. */
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../../shared/agent-protocol/messages.ts";
import type { ErrorCode } from "../../../../shared/api/errors.ts";
import { ServiceError } from "../../../core/service-error.ts";

type Meaning = readonly [code: ErrorCode, detail?: string];

const MEANINGS: Record<string, Meaning> = {
  ENOENT: ["path_not_found", "The sandbox has no such path."],
  ENOTDIR: ["path_not_found", "A part of the path is not a directory."],
  EISDIR: ["is_directory"],
  EEXIST: ["already_exists"],
  ENOTEMPTY: ["not_empty"],
  ENOSPC: ["disk_full", "The file system of the sandbox is full."],
  EDQUOT: ["drive_full"],
  EFBIG: ["file_too_large", "The file is larger than its file system takes, or has no end."],
  ENXIO: ["invalid_path", "The path is neither a file nor a directory."],
  ELOOP: ["invalid_path", "The links in the path form a loop."],
  ENAMETOOLONG: ["invalid_path", "The path is too long."],
  EINVAL: ["invalid_path", "The path cannot be used in this way: a directory cannot be moved into itself."],
  EMLINK: ["invalid_path", "The directory cannot hold more directories."],
  EBUSY: ["invalid_path", "The path is the root, or something is mounted there."],
  EROFS: ["invalid_path", "The file system is read-only."],
  EACCES: ["invalid_path", "The sandbox does not allow access to the path."],
  EPERM: ["invalid_path", "The sandbox does not allow the operation on the path."],
  ETXTBSY: ["invalid_path", "The file is a running program."],
  EXDEV: ["invalid_path", "The path is on another file system."],
};

/** For a call that creates its target, ENOENT means a missing parent directory. */
const MADE: Record<string, Meaning> = {
  ENOENT: ["invalid_path", "A link in the path points to nothing, or a directory was removed during the call."],
  ENOTDIR: ["invalid_path", "A part of the path is not a directory."],
};
const LISTED: Record<string, Meaning> = { ENOTDIR: ["invalid_path", "The path is not a directory."] };

export type FileCall = "any" | "make" | "list";

/** Converts an error of a file call into one for the caller. */
export function fileError(error: unknown, call: FileCall, owner?: string): unknown {
  if (!(error instanceof StreamError)) return error;
  switch (error.code) {
    case StreamErrorCode.file_failed: {
      const own = call === "make" ? MADE[error.message] : call === "list" ? LISTED[error.message] : undefined;
      const [code, detail] = own ?? MEANINGS[error.message] ?? ["invalid_path", unknownDetail(error.message)];
      return new ServiceError(code, { ...(detail === undefined ? {} : { detail }), cause: error });
    }
    case StreamErrorCode.file_changed:
      return new ServiceError("precondition_failed", { cause: error });
    case StreamErrorCode.user_not_found: {
      const message = `The sandbox has no user ${owner}.`;
      return new ServiceError("validation_failed", {
        detail: message,
        errors: [{ field: "owner", code: "not_found", message }],
      });
    }
    case StreamErrorCode.history_gone:
      return new ServiceError("history_gone", {
        detail: "The watch, or the changes after this cursor, are no longer kept.",
        hint: "List the directory, and watch it without a cursor.",
      });
    case StreamErrorCode.too_many_watches:
    case StreamErrorCode.too_many_streams:
      return new ServiceError("rate_limited", {
        detail: "The sandbox has too many watches or open files.",
        cause: error,
      });
    case StreamErrorCode.drive_unavailable:
      return new ServiceError("guest_unreachable", {
        detail: "The drive does not answer in this sandbox. Paths outside /mnt/drive still work.",
        cause: error,
      });
    case StreamErrorCode.unknown_method:
      return new ServiceError("guest_unreachable", {
        detail: "The sandbox's agent is older than this roomd and serves no files.",
        hint: "Build its template again (`roomd template build`), then create the sandbox again. Until then read and write files by commands.",
        cause: error,
      });
    default:
      return new ServiceError("guest_unreachable", { cause: error });
  }
}

/** Shows only the name of the errno from the guest's message. */
function unknownDetail(errno: string): string {
  return /^E[A-Z0-9]{2,20}$/.test(errno) ? `The sandbox returns ${errno}.` : "The sandbox refuses the path.";
}
