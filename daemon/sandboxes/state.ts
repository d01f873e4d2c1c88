/**
 * Owns the states of a sandbox and the ways between them. Pure.
 *
 *   creating → starting → running ⇄ pausing → paused → resuming → running
 *       └──────────┴─────────┴─────────┴────────┴─────────┴──▶ failed
 *   any but failed ──▶ destroying ──▶ destroyed ◀── failed
 */
import type { SandboxState } from "../../shared/api/sandboxes.ts";
import { ServiceError } from "../core/service-error.ts";

export const NEXT_STATES = {
  creating: ["starting", "failed", "destroying"],
  starting: ["running", "failed", "destroying"],
  running: ["pausing", "failed", "destroying"],
  pausing: ["paused", "running", "failed", "destroying"],
  paused: ["resuming", "failed", "destroying"],
  resuming: ["running", "failed", "destroying"],
  failed: ["destroyed"],
  destroying: ["destroyed"],
  destroyed: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>;

export function canBecome(from: SandboxState, to: SandboxState): boolean {
  return (NEXT_STATES[from] as readonly SandboxState[]).includes(to);
}

/** Throws invalid_state unless the sandbox is in one of these states. */
export function requireState(
  sandbox: { agent_id: string; state: SandboxState },
  allowed: readonly SandboxState[],
): void {
  if (allowed.includes(sandbox.state)) return;
  throw new ServiceError("invalid_state", {
    detail: `Sandbox ${sandbox.agent_id} is ${sandbox.state}; this needs it to be ${allowed.join(" or ")}.`,
    details: { state: sandbox.state, allowed_states: allowed },
    ...(sandbox.state === "paused"
      ? { hint: `It is in standby: POST …/sandboxes/${sandbox.agent_id}/resume lets it go on.` }
      : {}),
  });
}
