/** Failures of the command line: one error with a sentence for people and an exit status for scripts. */
import { ConnectionError, ProblemError, StreamError, UsageError } from "../../../sdk/typescript/src/errors.ts";
import { AWAY_MS } from "../../../sdk/typescript/src/stream.ts";
import { type ErrorCode, errorKind, type Problem } from "../../../shared/api/errors.ts";
import { ConfigError } from "../../core/config/config.ts";
import { describeError, errnoOf, ServiceError } from "../../core/service-error.ts";

/** Exit statuses; `--help` lists them. */
export const EXIT = { ok: 0, refused: 1, usage: 2, timeout: 124, roomd: 125, signal: 128 } as const;

/** Fields of a problem that a person needs; --json prints the whole problem. */
export type Complaint = Pick<Problem, "detail" | "errors" | "hint"> & Partial<Problem>;

export class CliError extends Error {
  override name = "CliError";
  readonly complaint: Complaint;
  readonly status: number;
  /** No reply: the service did not answer, or the connection broke first. */
  unreachable = false;

  constructor(complaint: Complaint | string, status: number = EXIT.refused, options: ErrorOptions = {}) {
    const full = typeof complaint === "string" ? { detail: complaint, errors: [], hint: null } : complaint;
    super(full.detail, options);
    this.complaint = full;
    this.status = status;
  }

  /** Output of --json: the service's own problem, or the same shape with a code of the command line. */
  get problem(): object {
    const code = this.status === EXIT.usage ? "usage" : this.unreachable ? "unreachable" : "failed";
    return { code, ...this.complaint };
  }

  /** Lines for a person: the detail, invalid fields, the cause on this host, a program's last output lines, the hint. */
  get lines(): string[] {
    const { detail, errors, hint, details } = this.complaint;
    const fields = errors
      .filter(({ message }) => message !== detail)
      .map(({ field, message }) => (message.startsWith(`${field} `) ? `  ${message}` : `  ${field}: ${message}`));
    const cause = this.cause === undefined ? [] : [`  ${describeError(this.cause)}`];
    // The fields follow the sentence; programs find them in `errors`.
    return [
      detail.replace(/; see errors\.$/, ":"),
      ...fields,
      ...cause,
      ...lastLinesIn(details),
      ...(hint ? [hint] : []),
    ];
  }
}

const MAX_LAST_LINES = 20;

/** The error's last lines of output, indented; empty if it has none. */
function lastLinesIn(details: object | undefined): string[] {
  const { last_lines } = (details ?? {}) as { last_lines?: unknown };
  if (!Array.isArray(last_lines)) return [];
  return last_lines.slice(-MAX_LAST_LINES).map((line) => `  ${line}`);
}

/** Converts any error to a CliError for printing. An unknown type is a bug: its message is all there is to print. */
export function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof ConfigError) return new CliError(error.message, EXIT.usage);
  if (error instanceof UsageError) return new CliError(error.message, EXIT.usage);
  if (error instanceof ProblemError) return new CliError(inOptions(error.problem as Problem));
  if (error instanceof StreamError) return new CliError(endOf(error));
  if (error instanceof ConnectionError) return notAnswered(error);
  if (error instanceof ServiceError) {
    const { code, options } = error;
    const { title, hint, status } = errorKind(code);
    const { detail = `${title}.`, details = {}, errors = [] } = options;
    const complaint = { code, title, detail, details, errors, hint: options.hint ?? hint ?? null };
    // The cause of a refusal is of no interest; the operator needs the cause of a failure.
    const isFailure = status >= 500 && error.cause !== undefined;
    return new CliError(complaint, EXIT.refused, isFailure ? { cause: error.cause } : {});
  }
  return new CliError(describeError(error));
}

/** Rewrites hints that name a parameter of the API to options of the command line. */
function inOptions(problem: Problem): Problem {
  return problem.code === "not_empty" ? { ...problem, hint: "With -r it is deleted with everything in it." } : problem;
}

/** The same for a followed stream; `goesOn` is added to the message if the service was unavailable for too long. */
export function lost(error: unknown, goesOn: string): CliError {
  const isAway = error instanceof ConnectionError && error.fault === "away";
  return isAway ? new CliError(`${AWAY} ${goesOn}`) : toCliError(error);
}

const AWAY = `The service has been unreachable for ${AWAY_MS / 1000} s.`;

/** In the form of a refusal with the same code. */
function endOf({ message: detail, code, retryable }: StreamError): Complaint {
  return { detail, code: code as ErrorCode, retryable, errors: [], hint: null };
}

function notAnswered(error: ConnectionError): CliError {
  const { fault, url, status } = error;
  if (fault === "away") return new CliError(AWAY);
  if (url === null) return new CliError(error.message);
  if (fault !== "foreign") return Object.assign(new CliError(whyUnreachable(url, error)), { unreachable: true });
  const detail = `${new URL(url).origin} answered ${status}, but it is not roomd.`;
  return new CliError({ detail, errors: [], hint: "Set ROOMD_URL to the address of the service." });
}

function whyUnreachable(url: string, { fault, cause }: ConnectionError): Complaint {
  const because = (detail: string, hint: string) => ({ detail, errors: [], hint });
  const code = errnoOf(cause) ?? "";
  const message = cause instanceof Error ? cause.message : String(cause);
  if (fault === "untrusted") {
    return because(
      `The certificate of ${url} is not trusted (${message}).`,
      "Put the service's certificate file in ROOMD_CA_CERT.",
    );
  }
  if (/^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER)$/.test(code))
    return because(`${url} does not speak TLS.`, "Try http:// in ROOMD_URL.");
  if (fault === "broken") {
    return because(
      `The connection to ${url} broke before the answer came. The call may or may not have been done.`,
      "If the service uses TLS, ROOMD_URL must begin with https://.",
    );
  }
  const why = /^(ECONNREFUSED|ConnectionRefused)$/.test(code) ? "" : ` (${message.split(". ")[0]})`;
  return because(
    `No service answers at ${url}${why}.`,
    "Start it with `systemctl start roomd` (without systemd: `roomd serve`), or set ROOMD_URL to its address.",
  );
}
