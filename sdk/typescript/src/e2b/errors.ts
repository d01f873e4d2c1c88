/** Errors with E2B's names, and their translation from the SDK's errors. */
import {
  AuthenticationError as NativeAuthenticationError,
  TimeoutError as NativeTimeoutError,
  ProblemError,
  UsageError,
} from "../errors.ts";

/** An error of a sandbox. `cause` is the SDK's own error, with code, hint and request id. */
export class SandboxError extends Error {
  override name = "SandboxError";
}

/** The command or the call did not end in time. */
export class TimeoutError extends SandboxError {
  override name = "TimeoutError";
}

/** An argument is wrong. */
export class InvalidArgumentError extends SandboxError {
  override name = "InvalidArgumentError";
}

/** A disk is full. */
export class NotEnoughSpaceError extends SandboxError {
  override name = "NotEnoughSpaceError";
}

/** The resource does not exist. */
export class NotFoundError extends SandboxError {
  override name = "NotFoundError";
}

/** The file or directory does not exist. */
export class FileNotFoundError extends NotFoundError {
  override name = "FileNotFoundError";
}

/** The sandbox does not exist, or has ended. */
export class SandboxNotFoundError extends NotFoundError {
  override name = "SandboxNotFoundError";
}

/** The API key is missing or invalid. */
export class AuthenticationError extends Error {
  override name = "AuthenticationError";
}

/** A rate limit or a quota is exceeded. */
export class RateLimitError extends SandboxError {
  override name = "RateLimitError";
}

/** A command exited with a code other than 0. */
export class CommandExitError extends SandboxError {
  override name = "CommandExitError";
  /** Exit code of the command. */
  readonly exitCode: number;
  /** Its standard output. */
  readonly stdout: string;
  /** Its standard error. */
  readonly stderr: string;
  /** Never set. */
  readonly error: string | undefined;

  /** Error of a command with this outcome. */
  constructor(result: { exitCode: number; stdout: string; stderr: string; error?: string }) {
    super(result.error ?? `exit status ${result.exitCode}`);
    this.exitCode = result.exitCode;
    this.stdout = result.stdout;
    this.stderr = result.stderr;
    this.error = result.error;
  }
}

const BY_CODE: Record<string, new (message: string, options: ErrorOptions) => Error> = {
  path_not_found: FileNotFoundError,
  sandbox_not_found: SandboxNotFoundError,
  room_not_found: SandboxNotFoundError,
  disk_full: NotEnoughSpaceError,
  drive_full: NotEnoughSpaceError,
};

/** The error that E2B's SDK would throw; errors of other origin are returned unchanged. */
export function translated(error: unknown): unknown {
  if (error instanceof NativeTimeoutError) return new TimeoutError(error.message, { cause: error });
  if (error instanceof NativeAuthenticationError) return new AuthenticationError(error.message, { cause: error });
  if (error instanceof UsageError) return new InvalidArgumentError(error.message, { cause: error });
  if (!(error instanceof ProblemError)) return error;
  const Known =
    BY_CODE[error.code] ??
    { 404: NotFoundError, 422: InvalidArgumentError, 400: InvalidArgumentError, 429: RateLimitError }[error.status] ??
    SandboxError;
  return new Known(error.message, { cause: error });
}

/** Runs `work` and translates its errors to E2B's. */
export async function translating<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error);
  }
}

/** The same for calls that return false if the resource does not exist. */
export async function unlessMissing(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await translating(work);
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}
