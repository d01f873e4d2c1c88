/** What is said when the directory cannot be asked: one class for every cause, so that callers need to know no driver. */

export type AwayReason =
  /** No connection, or it was lost. */
  | "unreachable"
  /** The deadline passed first. */
  | "timeout"
  /** The server ended the session, or is starting or stopping. */
  | "terminated"
  /** The server takes no writes: a standby, or one that was a primary until now. */
  | "read_only"
  /** The server is older than any that this was made for. */
  | "too_old"
  /** The server lets us not in: password, certificate, number of connections. */
  | "refused";

export class DirectoryAway extends Error {
  override name = "DirectoryAway";
  readonly reason: AwayReason;
  /** COMMIT was sent and no answer came: what was asked for may have been done. */
  readonly ambiguous: boolean;

  constructor(reason: AwayReason, detail: string, { ambiguous = false, cause }: AwayOptions = {}) {
    super(detail, { cause });
    this.reason = reason;
    this.ambiguous = ambiguous;
  }
}

interface AwayOptions {
  ambiguous?: boolean;
  cause?: unknown;
}

/** What the server itself says of an error (SQLSTATE, table 57014 and others of its manual's appendix A). */
const REASONS: readonly (readonly [RegExp, AwayReason])[] = [
  [/^(57P0[123]|25P03|57P05|08|58)/, "terminated"],
  [/^(57014|55P03)/, "timeout"],
  [/^25006/, "read_only"],
  [/^(28|53300|3D000|3F000|42P01)/, "refused"],
];

interface ServerSaid {
  code: string;
  severity: string;
}

/** What an error of the server carries; null for any other, such as one of the socket. */
export function serverSaid(error: unknown): ServerSaid | null {
  const { code, severity } = (error ?? {}) as Partial<ServerSaid>;
  return typeof severity === "string" && typeof code === "string" ? { code, severity } : null;
}

/** The same error as DirectoryAway; an answer of the server about the statement itself stays what it is. */
export function asAway(error: unknown): unknown {
  if (error instanceof DirectoryAway) return error;
  const said = serverSaid(error);
  const text = error instanceof Error ? error.message : String(error);
  if (said === null) return new DirectoryAway("unreachable", text, { cause: error });
  const reason = REASONS.find(([codes]) => codes.test(said.code))?.[1];
  if (reason !== undefined) return new DirectoryAway(reason, text, { cause: error });
  const isOver = said.severity === "FATAL" || said.severity === "PANIC";
  return isOver ? new DirectoryAway("terminated", text, { cause: error }) : error;
}
