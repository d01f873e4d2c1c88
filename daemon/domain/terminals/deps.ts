/** Injected dependencies of the terminals module: the modules, settings and callbacks that it is given. */
import type { SandboxState, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";

/** The target sandbox of a call. */
export interface TerminalTarget {
  room: RoomTarget;
  row: { sandbox_id: string; agent_id: string; state: SandboxState; status_reason: string; status_message: string };
  /** Whether the access only observes, as a web session's: it neither wakes the sandbox nor counts as use. */
  isLookedAt: boolean;
}

/** Access to sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): TerminalTarget;
  /**
   * The running guest's link, usable until `work` is done. A resting sandbox is woken for this reason, `api` if absent; observation wakes
   * no sandbox, and keeps none from being idle. Throws invalid_state, room_destroying, disk_full, guest_unreachable, and errors of a
   * resume.
   */
  withLink<T>(target: TerminalTarget, work: (link: GuestLink) => Promise<T>, reason?: WakeReason): Promise<T>;
  /** Called before work that starts at a path of the guest, or in the user's home. Throws drive_full while the drive there is held. */
  requireDriveFor(target: TerminalTarget, cwd: string | null): void;
  /** Translates a guest's failure to answer while its drive is held. */
  heldInstead(target: TerminalTarget, error: unknown): unknown;
  /** Marks the sandbox as in use, and not idle, until `work` is done. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /**
   * The guest's link, for work that does not count as use: waits while the sandbox is paused, and a short time for a reconnecting link.
   * Throws ServiceError: invalid_state once the sandbox has ended, guest_unreachable.
   */
  reach(sandboxId: string, over: AbortSignal): Promise<GuestLink>;
  /** Resolves with the sandbox's state once it is not running any more; never settles if `signal` aborts first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
}

/** Target of a terminal's token. */
export interface TerminalGoal {
  sandbox_id: string;
  terminal_id: string;
}

export interface TerminalDeps {
  /** Mark in tickets that routes them to this host of a cluster; null on a single host. */
  ticketMark: string | null;
  database: Database;
  log: Log;
  sandboxes: SandboxAccess;
  /** Whether a previously valid key is still valid. */
  isCurrentKey(keyId: KeyId): boolean;
  /** Calls `cut` when the key becomes invalid; the returned function unsubscribes. */
  holdKey(keyId: KeyId, cut: () => void): () => void;
  /** How long a terminal continues without an attached client. */
  detachedLifeMs: number;
}
