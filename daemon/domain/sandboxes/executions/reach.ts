/** Owns what all verbs about executions work with, and how they ask the guest about one. */
import type { SandboxState } from "../../../../shared/api/sandboxes.ts";
import type { KeyCall } from "../../../core/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import { asServiceError } from "../../executions/errors.ts";
import type { Reach } from "../../executions/output.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import type { SandboxDeps } from "../index.ts";
import { linkOf, requireRunning } from "../reach.ts";
import type { Supervisors } from "../supervisors.ts";
import type { SandboxRow } from "../table.ts";
import type { Bounds } from "./bounds.ts";
import type { Ends } from "./ends.ts";

const STANDS_STILL: readonly SandboxState[] = ["pausing", "paused", "resuming"];
const GOES_ON: readonly SandboxState[] = ["running", ...STANDS_STILL];

/** What all verbs about executions work with. */
export interface ExecutionDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  ends: Ends;
  bounds: Bounds;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}

export interface ExecutionTarget extends SandboxTarget {
  exec_id: string;
}

/** Throws room_not_found, sandbox_not_found. */
export function findExecution(deps: ExecutionDeps, call: KeyCall, params: Record<string, string>): ExecutionTarget {
  return { ...findTarget(deps.sandboxes, call, params), exec_id: String(params.exec_id) };
}

export function reachOf(supervisors: Supervisors, { sandbox_id }: Pick<SandboxRow, "sandbox_id">): Reach {
  return async (started, over) => {
    for (;;) {
      // A command stands still with its sandbox, and is not lost by that: so does whoever feeds or follows it.
      const waits = started === true ? supervisors.get(sandbox_id)?.published : undefined;
      await waits?.until(({ state }) => !STANDS_STILL.includes(state), Number.POSITIVE_INFINITY, over);
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

/** Asks the sandbox's guest about one of its executions. Throws ServiceError. */
export async function ask<T>(
  { supervisors }: ExecutionDeps,
  target: ExecutionTarget,
  question: (link: GuestLink, execId: string) => Promise<T>,
): Promise<T> {
  requireRunning(target);
  const { row, exec_id } = target;
  try {
    return await supervisors.use(row.sandbox_id, async () =>
      question(await reachOf(supervisors, row)("unknown"), exec_id),
    );
  } catch (error) {
    throw asServiceError(error, { exec_id, started: "unknown" });
  }
}
