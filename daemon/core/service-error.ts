/** The one error that verbs throw. It has codes, independent of HTTP; errors.ts gives it status and text. */
import type { ErrorCode, FieldError } from "../../shared/api/errors.ts";

interface ServiceErrorOptions {
  /** One plain sentence for the caller; absent: the title in the error table. */
  detail?: string;
  details?: Record<string, unknown>;
  errors?: FieldError[];
  hint?: string | undefined;
  /** The invalid field is in the path. */
  inPath?: boolean;
  /** False: the first attempt may have taken effect, so that a retry could repeat it, although the code is retryable in general. */
  retryable?: false;
  /** Delay before a retry, for retryable errors. */
  retryAfterSeconds?: number;
  cause?: unknown;
}

export class ServiceError extends Error {
  override name = "ServiceError";
  readonly code: ErrorCode;
  readonly options: ServiceErrorOptions;

  constructor(code: ErrorCode, options: ServiceErrorOptions = {}) {
    super(options.detail ?? code, { cause: options.cause });
    this.code = code;
    this.options = options;
  }
}

/** The error and its chain of causes: the query builder wraps errors of SQLite. */
export function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : [];
}

/** The chain of causes as one line, for the log only. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at !== undefined && parts.length < 8; at = at instanceof Error ? at.cause : undefined) {
    parts.push(
      at instanceof ServiceError ? `${at.code}: ${at.message}` : at instanceof Error ? at.message : String(at),
    );
  }
  return parts.join(" ← ");
}

/** Message for callers about an error that they did not cause: internal text never leaves the host. */
export function saidOf(error: unknown): string {
  return error instanceof ServiceError
    ? error.message
    : "An internal error occurred; the details are in the service's log.";
}

/** The errno name of a system error (`ENOSPC`), or null. */
export function errnoOf(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}
