/** The error for an unavailable cluster directory: one class for every cause, so that callers are independent of the driver. */

export type UnavailableReason =
  /** Connection failed or was lost. */
  | "unreachable"
  /** The deadline passed first. */
  | "timeout"
  /** The server ended the session, or is starting or stopping. */
  | "terminated"
  /** The server is read-only: a standby, or a former primary. */
  | "read_only"
  /** The server's version is older than the minimum supported. */
  | "too_old"
  /** The server rejected the connection: password, certificate, or number of connections. */
  | "refused";

export class DirectoryUnavailable extends Error {
  override name = "DirectoryAway";
  readonly reason: UnavailableReason;
  /** COMMIT was sent and not answered: the change may have been committed. */
  readonly ambiguous: boolean;

  constructor(reason: UnavailableReason, detail: string, { ambiguous = false, cause }: AwayOptions = {}) {
    super(detail, { cause });
    this.reason = reason;
    this.ambiguous = ambiguous;
  }
}

interface AwayOptions {
  ambiguous?: boolean;
  cause?: unknown;
}

/** Reasons by SQLSTATE (appendix A of PostgreSQL's manual: 57014 and others). */
const REASONS: readonly (readonly [RegExp, UnavailableReason])[] = [
  [/^(57P0[123]|25P03|57P05|08|58)/, "terminated"],
  [/^(57014|55P03)/, "timeout"],
  [/^25006/, "read_only"],
  [/^(28|53300|3D000|3F000|42P01)/, "refused"],
];

interface ServerSaid {
  code: string;
  severity: string;
}

/** SQLSTATE and severity of a server error; null for any other, such as a socket error. */
export function serverSaid(error: unknown): ServerSaid | null {
  const { code, severity } = (error ?? {}) as Partial<ServerSaid>;
  return typeof severity === "string" && typeof code === "string" ? { code, severity } : null;
}

/** The same error as DirectoryUnavailable; the server's error about the statement itself is returned unchanged. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof DirectoryUnavailable) return error;
  const serverError = serverSaid(error);
  const text = error instanceof Error ? error.message : String(error);
  if (serverError === null) return new DirectoryUnavailable("unreachable", text, { cause: error });
  const reason = REASONS.find(([codes]) => codes.test(serverError.code))?.[1];
  if (reason !== undefined) return new DirectoryUnavailable(reason, text, { cause: error });
  const isOver = serverError.severity === "FATAL" || serverError.severity === "PANIC";
  return isOver ? new DirectoryUnavailable("terminated", text, { cause: error }) : error;
}
