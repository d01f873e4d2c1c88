/**
 * States of a sandbox, their transitions, and the supervisor's verbs that may make them. Pure.
 *
 *     creating → starting → running ⇄ pausing → paused → resuming → running
 *         │          │         │ ⇅                           ▲ ↓
 *         │          │         │ hibernating ──▶ hibernated ─┴─┘
 *         │          │         └── any at rest ── a snapshot's ──▶ resuming
 *         └──────────┴─────────┴─ any of these ──▶ failed
 *     any but failed ──▶ destroying ──▶ destroyed ◀── failed
 */
import { LIVE_STATES, SANDBOX_STATES, type SandboxState } from "../../../../shared/api/sandboxes.ts";
import { ServiceError } from "../../../core/service-error.ts";

type Ways = Partial<Record<SandboxState, readonly SandboxState[]>>;

const fromEach = (states: readonly SandboxState[], to: SandboxState): Ways =>
  Object.fromEntries(states.map((state) => [state, [to]]));

interface VerbRule {
  /** The states in which the verb has an effect. */
  acts: readonly SandboxState[];
  /** Its effect in any other state: none, or refusal with invalid_state. */
  otherwise: "nothing" | "refused";
  /** Each state change that the verb may make, including after a faster operation. */
  ways: Ways;
}

/**
 * Verbs of a supervisor, executed one at a time. Two act before their turn: `destroy` publishes `destroying` and ends the processes under
 * the current work, and so does `fail` for an overdue sandbox.
 */
export const VERBS = {
  /** Brings a new guest up. */
  start: { acts: ["creating"], otherwise: "nothing", ways: { creating: ["starting"], starting: ["running"] } },
  /** Adopts the guest of the previous daemon. */
  adopt: {
    acts: ["running", "pausing", "paused", "hibernating", "hibernated", "resuming"],
    otherwise: "nothing",
    ways: {
      pausing: ["paused", "running"],
      hibernating: ["hibernated", "running"],
      resuming: ["running", "hibernated"],
    },
  },
  standby: { acts: ["running"], otherwise: "refused", ways: { running: ["pausing"], pausing: ["paused", "running"] } },
  hibernate: {
    acts: ["running"],
    otherwise: "refused",
    ways: { running: ["hibernating"], hibernating: ["hibernated", "running"] },
  },
  /** Takes a snapshot; the state does not change. */
  snapshot: { acts: ["running", "hibernated"], otherwise: "refused", ways: {} },
  /** Restores the sandbox's state of a snapshot. */
  rollback: {
    acts: ["running", "paused", "hibernated"],
    otherwise: "refused",
    ways: {
      ...fromEach(["running", "paused", "hibernated"], "resuming"),
      resuming: ["running", "paused", "hibernated"],
    },
  },
  resume: {
    acts: ["paused", "hibernated"],
    otherwise: "refused",
    ways: { paused: ["resuming"], hibernated: ["resuming"], resuming: ["running", "hibernated"] },
  },
  /** The guest is gone, did not come up, or is overdue. */
  fail: { acts: LIVE_STATES, otherwise: "nothing", ways: fromEach(LIVE_STATES, "failed") },
  /** Ends processes and frees resources that a failed sandbox still holds. */
  free: { acts: ["failed"], otherwise: "nothing", ways: {} },
  destroy: {
    acts: [...LIVE_STATES, "failed", "destroying"],
    otherwise: "nothing",
    ways: { ...fromEach(LIVE_STATES, "destroying"), ...fromEach(["failed", "destroying"], "destroyed") },
  },
} as const satisfies Record<string, VerbRule>;

export type VerbName = keyof typeof VERBS;

/** Whether this verb may change the state from `from` to `to`. */
export function mayTake(verb: VerbName, from: SandboxState, to: SandboxState): boolean {
  const ways: Ways = VERBS[verb].ways;
  return ways[from]?.includes(to) ?? false;
}

/** Whether this verb has an effect in this state. */
export function actsIn(verb: VerbName, state: SandboxState): boolean {
  return (VERBS[verb].acts as readonly SandboxState[]).includes(state);
}

/** The states from which this verb reaches state `to`. */
export function sourcesOf(verb: VerbName, to: SandboxState): SandboxState[] {
  return SANDBOX_STATES.filter((from) => mayTake(verb, from, to));
}

/**
 * Time limits of transitions. A sandbox that exceeds its limit ends: as destroyed if it was being destroyed, else as failed. Each limit is
 * above the timeouts of the work itself, so that it applies only if the work hangs.
 */
export const STATE_DEADLINES_MS: Partial<Record<SandboxState, number>> = {
  creating: 150_000,
  starting: 150_000,
  pausing: 60_000,
  hibernating: 660_000,
  resuming: 150_000,
  destroying: 45_000,
};

/** Milliseconds past the deadline after `inStateMs` in a state, or null. */
export function overdueFor(state: SandboxState, inStateMs: number): number | null {
  const deadlineMs = STATE_DEADLINES_MS[state];
  if (deadlineMs === undefined) return null;
  const late = inStateMs - deadlineMs;
  return late > 0 ? late : null;
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
    ...(sandbox.state === "paused" || sandbox.state === "hibernated"
      ? {
          hint: `It ${sandbox.state === "paused" ? "is in standby" : "hibernates"}. Resume it with {{sandbox_resume sandbox=${sandbox.agent_id}}}.`,
        }
      : {}),
  });
}
