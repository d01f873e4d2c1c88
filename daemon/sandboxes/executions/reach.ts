/** Owns how a call about executions reaches its guest, and what it is refused for on the way. */
import type { KeyCall } from "../../core/operation.ts";
import { requireActive } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { asServiceError } from "../../executions/errors.ts";
import type { Reach } from "../../executions/output.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import { STALLED_REASON } from "../health.ts";
import type { SandboxDeps } from "../index.ts";
import { requireState } from "../state.ts";
import type { Supervisors } from "../supervisors.ts";
import type { SandboxRow } from "../table.ts";
import type { Bounds } from "./bounds.ts";
import type { Ends } from "./ends.ts";

/** How long to wait for a guest whose connection is just coming back. */
const LINK_DEADLINE_MS = 10_000;

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

/** Throws room_destroying, invalid_state, disk_full. */
export function requireRunning({ room, row }: SandboxTarget): void {
  requireActive(room);
  requireState(row, ["running"]);
  if (row.status_reason === STALLED_REASON) throw new ServiceError("disk_full", { detail: row.status_message });
}

export function reachOf(supervisors: Supervisors, row: SandboxRow): Reach {
  return async (started) => {
    const unreachable = (cause?: unknown) => new ServiceError("guest_unreachable", { details: { started }, cause });
    const supervisor = supervisors.get(row.sandbox_id);
    if (!supervisor) throw unreachable();
    return await supervisor.link(LINK_DEADLINE_MS).catch((cause: unknown) => {
      throw cause instanceof ServiceError ? cause : unreachable(cause);
    });
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
