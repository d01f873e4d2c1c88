/** Maps a guest's errors about executions to errors of the API. */
import { StreamError } from "../../../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../../../shared/agent-protocol/messages.ts";
import { PieceError } from "../../../../../shared/agent-protocol/pieces.ts";
import { ServiceError } from "../../../../core/service-error.ts";

/** Whether a command is known to have started. */
export type Started = boolean | "unknown";

interface ExecutionContext {
  exec_id?: string;
  cwd?: string | undefined;
  user?: string | undefined;
  /** Whether the command is known to have started. */
  started?: Started;
}

/** Converts an error of a call to the guest into one for the caller. */
export function asServiceError(error: unknown, about: ExecutionContext): unknown {
  if (error instanceof PieceError) return unreachable(error, about);
  if (!(error instanceof StreamError)) return error;
  switch (error.code) {
    case StreamErrorCode.cwd_not_found: {
      const message = `${about.cwd ?? "The home directory"} does not exist in the sandbox.`;
      return new ServiceError("cwd_not_found", {
        detail: message,
        errors: [{ field: "cwd", code: "cwd_not_found", message }],
      });
    }
    case StreamErrorCode.user_not_found: {
      const message = `The sandbox has no user ${about.user}.`;
      return new ServiceError("validation_failed", {
        detail: message,
        errors: [{ field: "user", code: "not_found", message }],
      });
    }
    case StreamErrorCode.too_many_executions:
    case StreamErrorCode.too_many_streams:
      return new ServiceError("too_many_executions");
    case StreamErrorCode.exec_id_in_use:
      return new ServiceError("exec_id_in_use", {
        detail: `exec_id ${about.exec_id} is already used by a different command.`,
      });
    case StreamErrorCode.execution_not_found:
      return new ServiceError("execution_not_found", { detail: `The sandbox has no execution ${about.exec_id}.` });
    case StreamErrorCode.history_gone:
      return new ServiceError("history_gone", {
        detail: `That output of ${about.exec_id} is no longer kept, or the execution itself is gone.`,
        hint: "The execution's oldest_seq is the start of its kept output.",
      });
    case StreamErrorCode.not_running:
      return new ServiceError("invalid_state", {
        detail: `Execution ${about.exec_id} has ended, or takes no standard input.`,
        details: { state: "exited", allowed_states: ["running"] },
      });
    case StreamErrorCode.stdin_gap: {
      const message =
        "Earlier bytes of standard input are missing. stdin_bytes is the number of bytes that have arrived.";
      return new ServiceError("validation_failed", {
        detail: message,
        errors: [{ field: "offset", code: "out_of_range", message }],
      });
    }
    case StreamErrorCode.drive_unavailable:
      return new ServiceError("guest_unreachable", {
        detail: "The drive is not responding in this sandbox. Commands that do not use /mnt/drive still work.",
        details: { started: false },
        cause: error,
      });
    case StreamErrorCode.unknown_method:
      return new ServiceError("guest_unreachable", {
        detail: "The sandbox's agent is older than this roomd and keeps no executions. Create the sandbox again.",
        details: { started: false },
        cause: error,
      });
    default:
      return unreachable(error, about);
  }
}

function unreachable(cause: unknown, { started = false }: ExecutionContext): ServiceError {
  return new ServiceError("guest_unreachable", {
    ...(started === false ? {} : { detail: "The guest stopped answering while the command was running." }),
    details: { started },
    cause,
  });
}
