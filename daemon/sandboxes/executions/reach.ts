/** Owns what all verbs about executions work with, and how they ask the guest about one. */
import type { KeyCall } from "../../core/operation.ts";
import { asServiceError } from "../../executions/errors.ts";
import type { Reach } from "../../executions/output.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import type { SandboxDeps } from "../index.ts";
import { linkOf, requireRunning } from "../reach.ts";
import type { Supervisors } from "../supervisors.ts";
import type { SandboxRow } from "../table.ts";
import type { Bounds } from "./bounds.ts";
import type { Ends } from "./ends.ts";

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
  return (started) => linkOf(supervisors, sandbox_id, { started });
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
