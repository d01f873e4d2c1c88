/** Maps the guest's errors about terminals to errors of the API. */
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { MAX_LIVE_TERMINALS } from "../../../shared/api/terminals.ts";
import { ServiceError } from "../../core/service-error.ts";
import { refusalOf } from "../../host/guest-link/terminal.ts";
import type { TerminalTarget } from "./deps.ts";

interface TerminalContext {
  cwd?: string | undefined;
  user?: string | undefined;
  terminal_id?: string | undefined;
  watches?: true;
}

export function asServiceError(error: unknown, { row }: TerminalTarget, context: TerminalContext): ServiceError {
  const { cwd = "The home directory", user, terminal_id } = context;
  const bad = (field: string, code: "cwd_not_found" | "validation_failed", message: string) =>
    new ServiceError(code, { detail: message, errors: [{ field, code: "not_found", message }] });
  switch (refusalOf(error)) {
    case StreamErrorCode.cwd_not_found:
      return bad("cwd", "cwd_not_found", `${cwd} does not exist in the sandbox.`);
    case StreamErrorCode.user_not_found:
      return bad("user", "validation_failed", `The sandbox has no user ${user}.`);
    case StreamErrorCode.too_many_streams:
      return new ServiceError("too_many_executions", {
        detail: `The sandbox has ${MAX_LIVE_TERMINALS} live terminals, which is the maximum.`,
      });
    case StreamErrorCode.terminal_not_found:
      return terminalNotFound(row.agent_id, String(terminal_id));
    case StreamErrorCode.terminal_in_use:
      return new ServiceError("invalid_state", {
        detail: `Another client is attached to terminal ${terminal_id}.`,
        details: { state: "attached", allowed_states: ["detached"] },
        hint: "Attach with takeover=1 to disconnect it.",
      });
    case StreamErrorCode.invalid_request:
      return beyond("since", error);
    case StreamErrorCode.drive_unavailable:
      return new ServiceError("guest_unreachable", {
        detail: "The drive is not responding in this sandbox. A terminal that does not use /mnt/drive still opens.",
        cause: error,
      });
    case StreamErrorCode.unknown_method:
      return new ServiceError("guest_unreachable", {
        detail: `The sandbox's template is too old for ${context.watches ? "watching terminals" : "terminals"}. Build it again, then create the sandbox again.`,
        cause: error,
      });
    default:
      return error instanceof ServiceError ? error : new ServiceError("guest_unreachable", { cause: error });
  }
}

/** Error for an offset beyond the output so far. */
export function beyond(field: "since" | "after", cause?: unknown): ServiceError {
  const message = `${field} is beyond the terminal's output so far.`;
  return new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field, code: "out_of_range", message }],
    cause,
  });
}

export function terminalNotFound(agentId: string, terminalId: string): ServiceError {
  return new ServiceError("execution_not_found", { detail: `Sandbox ${agentId} has no terminal ${terminalId}.` });
}
