/** How the command line fails: one error with a sentence for people and an exit status for scripts. */
import { errorKind, type Problem } from "../../shared/api/errors.ts";
import { ConfigError } from "../core/config.ts";
import { describeError, ServiceError } from "../core/service-error.ts";

/** Exit statuses; `--help` lists them. */
export const EXIT = { ok: 0, refused: 1, usage: 2, timeout: 124, roomd: 125, signal: 128 } as const;

/** What of a problem a person needs; the whole is printed with --json. */
export type Complaint = Pick<Problem, "detail" | "errors" | "hint"> & Partial<Problem>;

export class CliError extends Error {
  override name = "CliError";
  readonly complaint: Complaint;
  readonly status: number;
  /** Nobody answered, or the connection broke before there was an answer. */
  unreachable = false;

  constructor(complaint: Complaint | string, status: number = EXIT.refused, options: ErrorOptions = {}) {
    const full = typeof complaint === "string" ? { detail: complaint, errors: [], hint: null } : complaint;
    super(full.detail, options);
    this.complaint = full;
    this.status = status;
  }

  /** What --json prints: the service's own problem, or the same shape with a code of ours. */
  get problem(): object {
    const code = this.status === EXIT.usage ? "usage" : this.unreachable ? "unreachable" : "failed";
    return { code, ...this.complaint };
  }

  /** Lines for a person: the sentence, every bad field, what lies behind it on this host, what to do. */
  get lines(): string[] {
    const { detail, errors, hint } = this.complaint;
    const fields = errors
      .filter(({ message }) => message !== detail)
      .map(({ field, message }) => (message.startsWith(`${field} `) ? `  ${message}` : `  ${field}: ${message}`));
    const cause = this.cause === undefined ? [] : [`  ${describeError(this.cause)}`];
    return [detail, ...fields, ...cause, ...(hint ? [hint] : [])];
  }
}

/** Any error as one that can be printed. What is none of ours is a bug: its message is all there is to say. */
export function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error;
  if (error instanceof ConfigError) return new CliError(error.message, EXIT.usage);
  if (error instanceof ServiceError) {
    const { code, options } = error;
    const { title, hint, status } = errorKind(code);
    const { detail = `${title}.`, details = {}, errors = [] } = options;
    const complaint = { code, title, detail, details, errors, hint: options.hint ?? hint ?? null };
    // What lies behind a refusal is no news; behind a failure it is what the operator looks for.
    const isFailure = status >= 500 && error.cause !== undefined;
    return new CliError(complaint, EXIT.refused, isFailure ? { cause: error.cause } : {});
  }
  return new CliError(describeError(error));
}
