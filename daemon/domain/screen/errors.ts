/** Maps failures of a screen to errors of the API. */
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import { refusalOf } from "../../host/guest-link/terminal.ts";
import { RfbError } from "./rfb/limits.ts";

/** An error caused neither by the guest nor by the caller is unchanged. `signal` is the call's. */
export function screenError(error: unknown, agentId: string, signal: AbortSignal): unknown {
  if (error instanceof ServiceError) return error;
  // An error after the end of the call has the reason of that end.
  if (signal.aborted) return signal.reason;
  const code = refusalOf(error);
  // Guest agents without support for screens belong to templates without a screen.
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
  const detail = guestsFault(error);
  return detail === null ? error : new ServiceError("guest_unreachable", { detail, cause: error });
}

function guestsFault(error: unknown): string | null {
  if (error instanceof RfbError) return `The sandbox's screen cannot be used: ${error.message}.`;
  if (error instanceof DeadlineError) return "The sandbox's screen does not respond.";
  if (error instanceof StreamError) return "The connection to the sandbox's screen was lost.";
  return null;
}
