/** The failure of an audit record in a word or two. Pure. */
import type { AuditRecord } from "../../../shared/api/audit.ts";

/** Null for a success. The call that runs a command succeeds even if the command fails. */
export function failureOf({ event, outcome, error_code, status, details }: AuditRecord): string | null {
  if (outcome !== "success") return error_code ?? `${outcome} ${status ?? ""}`.trim();
  if (event !== "exec.finished") return null;
  if (details.timed_out === true) return "timed out";
  if (typeof details.signal === "string") return details.signal;
  return typeof details.exit_code === "number" && details.exit_code !== 0 ? `exit ${details.exit_code}` : null;
}
