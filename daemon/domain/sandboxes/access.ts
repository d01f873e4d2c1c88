/** Access of other domain modules to a sandbox: the guest's link while it runs, and notification of its pause and its end. */
import type { SandboxState, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { SandboxAccess } from "../terminals/deps.ts";
import type { SandboxDeps } from "./deps.ts";
import { heldInstead, requireDriveFor } from "./drive-held.ts";
import { guestAccessOf } from "./executions/guest-access.ts";
import { findTarget, findTargetEver, type SandboxTarget } from "./find.ts";
import { inUse, linkOf } from "./guest-access.ts";
import type { Supervisors } from "./lifecycle/supervisors.ts";
import type { Waking } from "./lifecycle/waking.ts";

const ENDED: readonly SandboxState[] = ["failed", "destroying", "destroyed"];

export interface SandboxReach extends SandboxAccess {
  find(call: KeyCall, params: Record<string, string>): SandboxTarget;
  /** The same, including destroyed sandboxes, by sandbox_id. */
  findEver(call: KeyCall, params: Record<string, string>): SandboxTarget;
  /**
   * The running guest's link for work without a call, usable until `work` is done; a paused or hibernated sandbox is woken if `reason` is
   * given. Throws guest_unreachable, and errors of its resume.
   */
  withGuest<T>(sandboxId: string, work: (link: GuestLink) => Promise<T>, reason?: WakeReason): Promise<T>;
  /** Resolves with the sandbox's state once it will not run again; never settles if `signal` aborts first. */
  ended(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** Whether its room is moving to another host, or has moved. */
  isMoving(sandboxId: string): boolean;
}

export function makeAccess(deps: SandboxDeps, supervisors: Supervisors, waking: Waking): SandboxReach {
  /** Resolves with the first state that satisfies `isOne`. */
  const reached = async (sandboxId: string, isOne: (state: SandboxState) => boolean, signal: AbortSignal) => {
    const supervisor = supervisors.get(sandboxId);
    if (!supervisor) return "destroyed";
    const seen = supervisor.published.until(({ state }) => isOne(state), Number.POSITIVE_INFINITY, signal);
    const row = await seen.catch(() => null);
    return row ? row.state : await Promise.withResolvers<never>().promise;
  };
  return {
    find: (call, params) => findTarget(deps, call, params),
    findEver: (call, params) => findTargetEver(deps, call, params),
    withLink: async (target, work, reason) => {
      await waking.requireAwake(target, reason);
      const { sandbox_id } = target.row;
      return await inUse(supervisors, target, async () => await work(await linkOf(supervisors, sandbox_id)));
    },
    withGuest: (sandboxId, work, reason) =>
      supervisors.use(sandboxId, async () => {
        if (reason !== undefined) await waking.wake(sandboxId, reason);
        return await work(await runningLink(supervisors, sandboxId));
      }),
    requireDriveFor: ({ room }, cwd) => requireDriveFor(deps, room, cwd === null ? {} : { cwd }),
    heldInstead: ({ room }, error) => heldInstead(deps, room, error),
    reach: async (sandboxId, over) => {
      try {
        return await guestAccessOf(supervisors, sandboxId)(true, over);
      } catch (error) {
        const state = supervisors.get(sandboxId)?.row.state ?? "destroyed";
        if (!ENDED.includes(state)) throw error;
        const details = { state, allowed_states: ["running"] };
        throw new ServiceError("invalid_state", { detail: `The sandbox is ${state}.`, details });
      }
    },
    use: (sandboxId, work) => supervisors.use(sandboxId, work),
    stopped: (sandboxId, signal) => reached(sandboxId, (state) => state !== "running", signal),
    ended: (sandboxId, signal) => reached(sandboxId, (state) => ENDED.includes(state), signal),
    isMoving: (sandboxId) => {
      const row = supervisors.get(sandboxId)?.row;
      return row !== undefined && (row.exit_cause === "host_evacuated" || deps.currentRoom(row.room_uid).is_moving);
    },
  };
}

/** Reveals only the sandbox's state: the client may have nothing but a port's address. */
async function runningLink(supervisors: Supervisors, sandboxId: string): Promise<GuestLink> {
  const state = supervisors.get(sandboxId)?.row.state ?? "destroyed";
  if (state !== "running") throw new ServiceError("guest_unreachable", { detail: `The sandbox is ${state}.` });
  return await linkOf(supervisors, sandboxId);
}
