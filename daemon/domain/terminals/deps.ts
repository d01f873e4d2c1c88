/** What terminals need of others. */
import type { SandboxState, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { KeyCall } from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";

/** The sandbox that a call is about. */
export interface TerminalTarget {
  room: RoomTarget;
  row: { sandbox_id: string; agent_id: string; state: SandboxState; status_reason: string; status_message: string };
  /** By a session, which only looks. */
  isLookedAt: boolean;
}

/** What terminals need of sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): TerminalTarget;
  /**
   * The running guest's link, to be used until `work` is done. One that rests is woken for this reason, `api` if absent; who only looks
   * wakes no sandbox, and keeps none from being idle. Throws invalid_state, room_destroying, disk_full, guest_unreachable, and what a
   * resume throws.
   */
  withLink<T>(target: TerminalTarget, work: (link: GuestLink) => Promise<T>, reason?: WakeReason): Promise<T>;
  /** Before what begins at a path of the guest, or in the user's home. Throws drive_full while the drive there is held. */
  requireDriveFor(target: TerminalTarget, cwd: string | null): void;
  /** What a guest's failure to answer means while its drive is held. */
  heldInstead(target: TerminalTarget, error: unknown): unknown;
  /** The sandbox is in use until `work` is done, and not idle. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /**
   * The guest's link, for what does not count as use: waits while the sandbox is paused, and a little for a link that is coming
   * back. Throws ServiceError: invalid_state once the sandbox has ended, guest_unreachable.
   */
  reach(sandboxId: string, over: AbortSignal): Promise<GuestLink>;
  /** Resolves with its state once the sandbox is not running any more; never when `signal` comes first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
}

/** What a terminal's token opens. */
export interface TerminalGoal {
  sandbox_id: string;
  terminal_id: string;
}

export interface TerminalDeps {
  /** Stands in tickets where there are several hosts, and leads to this one; null: there are not. */
  ticketMark: string | null;
  database: Database;
  log: Log;
  sandboxes: SandboxAccess;
  /** Whether a key that was good is so still. */
  isCurrentKey(keyId: KeyId): boolean;
  /** Calls `cut` when the key is no longer good; what is returned lets go of it. */
  holdKey(keyId: KeyId, cut: () => void): () => void;
  /** How long a terminal goes on while nobody is attached. */
  detachedLifeMs: number;
}
