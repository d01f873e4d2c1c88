/** The errors of file requests, as system calls name them, and how they end a stream. */
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";

/** A request that the agent refuses as the kernel would. */
export class FileError extends Error {
  override name = "FileError";
  readonly code: string;
  constructor(errno: string) {
    super(errno);
    this.code = errno;
  }
}

/** A request that the agent refuses with an error code of the protocol. */
export class FileRefusal extends Error {
  override name = "FileRefusal";
  readonly code: StreamErrorCode;
  constructor(code: StreamErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The name of a failed system call's errno; null for other errors. */
export function errnoOf(error: unknown): string | null {
  const code = error instanceof Error && "code" in error ? error.code : null;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : null;
}

/** Whether there is no such entry. */
export function isMissing(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ENOTDIR";
}

/** Fails the stream with the code of a file error. Returns false for any other error. */
export function failStream(stream: Stream, error: unknown): boolean {
  if (error instanceof FileRefusal) stream.fail(error.code, error.message);
  else {
    const errno = errnoOf(error);
    if (errno === null) return false;
    stream.fail(StreamErrorCode.file_failed, errno);
  }
  return true;
}
