import type { KeyCall } from "../../../core/call/operation.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import { findTarget, type SandboxTarget } from "../find.ts";
import { inUse } from "../guest-access.ts";
import type { ExecutionDeps } from "./deps.ts";
import { guestAccessOf } from "./guest-access.ts";
import { asServiceError } from "./run/errors.ts";

export interface ExecutionTarget extends SandboxTarget {
  exec_id: string;
}

/** Throws room_not_found, sandbox_not_found. */
export function findExecution(deps: ExecutionDeps, call: KeyCall, params: Record<string, string>): ExecutionTarget {
  return { ...findTarget(deps.sandboxes, call, params), exec_id: String(params.exec_id) };
}

/** Sends a request about one execution to the sandbox's guest. Throws ServiceError. */
export async function ask<T>(
  { supervisors, waking }: ExecutionDeps,
  target: ExecutionTarget,
  question: (link: GuestLink, execId: string) => Promise<T>,
): Promise<T> {
  await waking.requireAwake(target);
  const { row, exec_id } = target;
  try {
    return await inUse(supervisors, target, async () =>
      question(await guestAccessOf(supervisors, row.sandbox_id)("unknown"), exec_id),
    );
  } catch (error) {
    throw asServiceError(error, { exec_id, started: "unknown" });
  }
}
