/**
 * Owns the states of a sandbox and the ways between them. Pure.
 *
 *   creating → starting → running ⇄ pausing → paused → resuming → running
 *       └──────────┴─────────┴─────────┴────────┴─────────┴──▶ failed
 *   any but failed ──▶ destroying ──▶ destroyed ◀── failed
 */
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import { ServiceError } from "../../core/service-error.ts";

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

/**
 * How long a sandbox may be on its way. What takes longer ends: as destroyed when it was to be destroyed, else as failed.
 * Each is beyond what the work itself allows for, so that it strikes only where that hangs.
 */
export const STATE_DEADLINES_MS: Partial<Record<SandboxState, number>> = {
  creating: 150_000,
  starting: 150_000,
  pausing: 60_000,
  resuming: 60_000,
  destroying: 45_000,
};

/** Milliseconds by which a sandbox is past its state's deadline, or null. */
export function overdueFor(sandbox: { state: SandboxState; last_transition_at: string }, nowMs: number): number | null {
  const deadlineMs = STATE_DEADLINES_MS[sandbox.state];
  if (deadlineMs === undefined) return null;
  const late = nowMs - Date.parse(sandbox.last_transition_at) - deadlineMs;
  return late > 0 ? late : null;
}

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
