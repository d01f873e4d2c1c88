/** Access to the guest of an execution, including while its sandbox is paused. */
import type { SandboxState } from "../../../../shared/api/sandboxes.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { linkOf } from "../guest-access.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Reach } from "./run/output.ts";

const STANDS_STILL: readonly SandboxState[] = ["pausing", "paused", "hibernating", "hibernated", "resuming"];
const GOES_ON: readonly SandboxState[] = ["running", ...STANDS_STILL];

/**
 * `leaves`: whether the room is moving to another host, so that the call is answered now and repeated there; if absent, it waits anyway.
 */
export function guestAccessOf(
  supervisors: Supervisors,
  sandbox_id: string,
  leaves: () => boolean = () => false,
): Reach {
  const isLeaving = (state: SandboxState) => STANDS_STILL.includes(state) && leaves();
  return async (started, over) => {
    for (;;) {
      // A command is paused with its sandbox, not lost: calls that feed or follow it wait as well.
      const waits = started === true ? supervisors.get(sandbox_id)?.published : undefined;
      const isOver = (state: SandboxState) => !STANDS_STILL.includes(state) || isLeaving(state);
      const found = await waits?.until(({ state }) => isOver(state), Number.POSITIVE_INFINITY, over);
      if (found && isLeaving(found.state)) throw movesWith();
      try {
        return await linkOf(supervisors, sandbox_id, { started });
      } catch (error) {
        const state = supervisors.get(sandbox_id)?.row.state ?? "destroyed";
        const stoodStill = error instanceof ServiceError && error.code === "invalid_state" && GOES_ON.includes(state);
        if (started !== true || !stoodStill) throw error;
      }
    }
  };
}

function movesWith(): ServiceError {
  return new ServiceError("room_moving", {
    detail: "The room is moving to another host; the command continues there.",
    details: { started: true },
  });
}
