/** Maps the guest agent's errors to messages in an SSH session. */
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { ServiceError } from "../../core/service-error.ts";
import { refusalOf } from "../../host/guest-link/terminal.ts";

/** Throws a ServiceError. */
export function asServiceError(error: unknown): never {
  const code = refusalOf(error);
  if (code === StreamErrorCode.port_not_listening) {
    throw new ServiceError("port_not_listening", {
      detail: "Nothing listens at the target in the guest, or the session's user may not connect to it.",
      cause: error,
    });
  }
  if (code === StreamErrorCode.too_many_streams || code === StreamErrorCode.too_many_executions) {
    throw new ServiceError("too_many_executions", {
      detail: "The sandbox is at its limit of running commands.",
      cause: error,
    });
  }
  if (code === StreamErrorCode.drive_unavailable) {
    throw new ServiceError("guest_unreachable", {
      detail: "The drive is not responding in this sandbox. Commands that do not use /mnt/drive still work.",
      cause: error,
    });
  }
  if (code === StreamErrorCode.unknown_method) {
    throw new ServiceError("guest_unreachable", {
      detail: "The guest's agent is too old for the call. Build its template again.",
      cause: error,
    });
  }
  throw new ServiceError("guest_unreachable", { cause: error });
}
