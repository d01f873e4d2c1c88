/** Errors of calls: the service's answer by its code, or the lack of an answer. */
import type { TemplateBuild } from "./generated/schemas.ts";

/** An invalid field of a request. */
export interface FieldError {
  /** Path of the field. */
  field: string;
  /** Code of the fault. */
  code: string;
  /** Description of the fault. */
  message: string;
}

/** RFC 9457 problem details of an error response. */
export interface Problem {
  /** URI of the problem type. */
  type: string;
  /** Short description of the code. */
  title: string;
  /** HTTP status. */
  status: number;
  /** Description of this failure. */
  detail: string;
  /** Stable error code, from a closed list. */
  code: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** Id of the request, for logs and support. */
  request_id: string;
  /** Data about the failure, by code. */
  details: Record<string, unknown>;
  /** Every invalid field. */
  errors: FieldError[];
  /** Suggestion for the next step. */
  hint: string | null;
}

/** Base class of all errors that the SDK throws. */
export class RoomdError extends Error {
  override name = "RoomdError";
}

/** An argument is invalid; nothing was sent. */
export class UsageError extends RoomdError {
  override name = "UsageError";
}

/**
 * Cause of a ConnectionError. `unreachable`: no connection. `untrusted`: the certificate is not trusted. `broken`: the connection broke, and
 * the call may have been executed. `foreign`: the response is not from roomd. `away`: a stream could not be resumed.
 */
export type ConnectionFault = "unreachable" | "untrusted" | "broken" | "foreign" | "away";

interface ConnectionErrorOptions extends ErrorOptions {
  fault?: ConnectionFault;
  url?: string;
  status?: number;
}

/** No response arrived: the service is unreachable, the connection broke, or the response is not from roomd. */
export class ConnectionError extends RoomdError {
  override name = "ConnectionError";
  /** Cause of the failure. */
  readonly fault: ConnectionFault;
  /** URL of the service, if it is known. */
  readonly url: string | null;
  /** Status of a response that is not from roomd. */
  readonly status: number | null;

  /** An error with this message and cause. */
  constructor(message: string, { fault = "broken", url, status, ...options }: ConnectionErrorOptions = {}) {
    super(message, options);
    this.fault = fault;
    this.url = url ?? null;
    this.status = status ?? null;
  }
}

/** The time limit of the call is over. */
export class TimeoutError extends RoomdError {
  override name = "TimeoutError";
}

/** The service refused or could not execute the call. The subclass is the category of the problem, `code` the exact one. */
export class ProblemError extends RoomdError {
  override name = "ProblemError";
  /** The problem details of the response. */
  readonly problem: Problem;

  /** Error of a response with these problem details. */
  constructor(problem: Problem) {
    super(problem.hint === null ? problem.detail : `${problem.detail} ${problem.hint}`);
    this.problem = problem;
  }

  /** Stable error code, from a closed list. */
  get code(): string {
    return this.problem.code;
  }

  /** HTTP status. */
  get status(): number {
    return this.problem.status;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return this.problem.retryable;
  }

  /** Suggestion for the next step. */
  get hint(): string | null {
    return this.problem.hint;
  }

  /** Id of the request, for logs and support. */
  get requestId(): string {
    return this.problem.request_id;
  }

  /** Data about the failure, by code. */
  get details(): Record<string, unknown> {
    return this.problem.details;
  }

  /** Every invalid field. */
  get errors(): FieldError[] {
    return this.problem.errors;
  }
}

/** Event that ends a stream with an error. */
export interface ErrorEvent {
  /** Kind of the event. */
  type: "error";
  /** Stable error code. */
  code: string;
  /** Absent in streams of audit records. */
  detail?: string;
  /** Whether the stream may be resumed later. */
  retryable?: boolean;
}

/** A stream ended because the service cannot continue it. */
export class StreamError extends RoomdError {
  override name = "StreamError";
  /** Stable error code. */
  readonly code: string;
  /** Whether the stream may be resumed later. */
  readonly retryable: boolean;

  /** Error of a stream that ended with this event. */
  constructor({ code, detail = `The stream ended: ${code}.`, retryable = code === "shutting_down" }: ErrorEvent) {
    super(detail);
    this.code = code;
    this.retryable = retryable;
  }
}

/** 400, 413, 415, 416, 422: the call is invalid. */
export class InvalidRequestError extends ProblemError {
  override name = "InvalidRequestError";
}

/** 401: the API key is missing or invalid. */
export class AuthenticationError extends ProblemError {
  override name = "AuthenticationError";
}

/** 403: the key is valid but lacks the permission. */
export class PermissionError extends ProblemError {
  override name = "PermissionError";
}

/** 404: the resource does not exist. */
export class NotFoundError extends ProblemError {
  override name = "NotFoundError";
}

/** 409: the call conflicts with the current state. */
export class ConflictError extends ProblemError {
  override name = "ConflictError";
}

/** 410: the resource existed and is gone. */
export class GoneError extends ProblemError {
  override name = "GoneError";
}

/** 412: the precondition of If-Match does not hold. */
export class PreconditionError extends ProblemError {
  override name = "PreconditionError";
}

/** 429: a rate limit or a quota is exceeded. */
export class LimitError extends ProblemError {
  override name = "LimitError";
}

/** 5xx: the service, its host or a guest cannot execute the call now. */
export class UnavailableError extends ProblemError {
  override name = "UnavailableError";
}

const KINDS: Record<number, typeof ProblemError> = {
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  412: PreconditionError,
  429: LimitError,
};

/** Creates the error of the subclass for the status. */
export function problemError(problem: Problem): ProblemError {
  const Kind = KINDS[problem.status] ?? (problem.status >= 500 ? UnavailableError : InvalidRequestError);
  return new Kind(problem);
}

/** A template could not be built. */
export class TemplateBuildError extends RoomdError {
  override name = "TemplateBuildError";
  /** Record of the build. */
  readonly build: TemplateBuild;
  /** The last lines of its output. */
  readonly lastLines: readonly string[];

  /** Of a build that failed. */
  constructor(build: TemplateBuild, lastLines: readonly string[]) {
    const reason = build.failure?.detail ?? `it ended as ${build.state}`;
    super([`Template ${build.template_id} was not built: ${reason}`, ...lastLines].join("\n"));
    this.build = build;
    this.lastLines = lastLines;
  }
}
