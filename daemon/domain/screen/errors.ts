/** Maps what goes wrong with a screen to errors of the API. */
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { DeadlineError } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import { refusalOf } from "../../host/guest-link/terminal.ts";
import { RfbError } from "./rfb/limits.ts";

export function asServiceError(error: unknown, agentId: string): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = refusalOf(error);
  // Agents that know no screens are of templates that have none.
  if (code === StreamErrorCode.no_screen || code === StreamErrorCode.unknown_method) {
    return new ServiceError("invalid_state", {
      detail: `Sandbox ${agentId} has no screen.`,
      hint: "Create the sandbox with template_id desktop, or another template that has a screen.",
      cause: error,
    });
  }
  if (code === StreamErrorCode.too_many_streams) {
    return new ServiceError("insufficient_capacity", { detail: "The sandbox is at its limit of concurrent work." });
  }
  const detail =
    error instanceof RfbError
      ? `The sandbox's screen cannot be used: ${error.message}.`
      : error instanceof DeadlineError
        ? "The sandbox's screen does not respond."
        : "The connection to the sandbox's screen was lost.";
  return new ServiceError("guest_unreachable", { detail, cause: error });
}
