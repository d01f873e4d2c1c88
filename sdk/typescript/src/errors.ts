/** Owns the ways in which a call fails: what the service answered by its code, or that no answer came. */
import type { TemplateBuild } from "./generated/schemas.ts";

/** One field that is wrong. */
export interface FieldError {
  field: string;
  code: string;
  message: string;
}

/** RFC 9457 problem details, as the service answers them. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** One word of a closed list, which does not change. */
  code: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  request_id: string;
  details: Record<string, unknown>;
  errors: FieldError[];
  /** What to do next. */
  hint: string | null;
}

/** Everything that the SDK throws, but for mistakes of its caller. */
export class RoomdError extends Error {
  override name = "RoomdError";
}

/** What the caller gave is wrong, and nothing was sent. */
export class UsageError extends RoomdError {
  override name = "UsageError";
}

/**
 * Why no answer came. `unreachable`: nobody answers there. `untrusted`: its certificate is not trusted. `broken`: the connection broke, and
 * what was asked for may have been done. `foreign`: what answered is not roomd. `away`: a stream could not be gone on with.
 */
export type ConnectionFault = "unreachable" | "untrusted" | "broken" | "foreign" | "away";

interface ConnectionErrorOptions extends ErrorOptions {
  fault?: ConnectionFault;
  url?: string;
  status?: number;
}

/** No answer came: nobody listens, the connection broke, or what answered is not roomd. */
export class ConnectionError extends RoomdError {
  override name = "ConnectionError";
  readonly fault: ConnectionFault;
  /** Of the service, where it is known. */
  readonly url: string | null;
  /** With which something answered that is not roomd. */
  readonly status: number | null;

  constructor(message: string, { fault = "broken", url, status, ...options }: ConnectionErrorOptions = {}) {
    super(message, options);
    this.fault = fault;
    this.url = url ?? null;
    this.status = status ?? null;
  }
}

/** The time that the caller gave is over. */
export class TimeoutError extends RoomdError {
  override name = "TimeoutError";
}

/** The service refused, or could not do it. The subclass tells the kind, `code` what it is. */
export class ProblemError extends RoomdError {
  override name = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.hint === null ? problem.detail : `${problem.detail} ${problem.hint}`);
    this.problem = problem;
  }

  get code(): string {
    return this.problem.code;
  }

  get status(): number {
    return this.problem.status;
  }

  get retryable(): boolean {
    return this.problem.retryable;
  }

  get hint(): string | null {
    return this.problem.hint;
  }

  get requestId(): string {
    return this.problem.request_id;
  }

  get details(): Record<string, unknown> {
    return this.problem.details;
  }

  /** Every field that is wrong. */
  get errors(): FieldError[] {
    return this.problem.errors;
  }
}

export interface ErrorEvent {
  type: "error";
  code: string;
  /** Of an audit's stream nothing but the code is told. */
  detail?: string;
  retryable?: boolean;
}

/** What a stream says last when it cannot go on. */
export class StreamError extends RoomdError {
  override name = "StreamError";
  readonly code: string;
  readonly retryable: boolean;

  constructor({ code, detail = `The stream ended: ${code}.`, retryable = code === "shutting_down" }: ErrorEvent) {
    super(detail);
    this.code = code;
    this.retryable = retryable;
  }
}

/** 400, 413, 415, 416, 422: the call itself is wrong. */
export class InvalidRequestError extends ProblemError {
  override name = "InvalidRequestError";
}

/** 401: no key, or one that is not good. */
export class AuthenticationError extends ProblemError {
  override name = "AuthenticationError";
}

/** 403: the key is good, and may not do this. */
export class PermissionError extends ProblemError {
  override name = "PermissionError";
}

/** 404. */
export class NotFoundError extends ProblemError {
  override name = "NotFoundError";
}

/** 409: it does not fit with how things are. */
export class ConflictError extends ProblemError {
  override name = "ConflictError";
}

/** 410: it was there. */
export class GoneError extends ProblemError {
  override name = "GoneError";
}

/** 412: what If-Match or if_match wanted is not so. */
export class PreconditionError extends ProblemError {
  override name = "PreconditionError";
}

/** 429: too much at once, or a quota is used up. */
export class LimitError extends ProblemError {
  override name = "LimitError";
}

/** 5xx: the service, its host or a guest cannot do it now. */
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
