/** Injected dependencies of the module for screens: the modules, settings and callbacks that it is given. */
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import type { KeyId, OrgId, RoomUid } from "../../../shared/ids.ts";
import type { HeldSession, KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";

/** The target sandbox of a call. */
export interface ScreenTarget {
  room: RoomTarget;
  row: {
    sandbox_id: string;
    agent_id: string;
    org_id: OrgId;
    state: SandboxState;
    status_reason: string;
    status_message: string;
  };
  /** Whether the access only observes, as a web session's: it neither wakes the sandbox nor counts as use. */
  isLookedAt: boolean;
}

/** Access to sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): ScreenTarget;
  /** The same, including destroyed sandboxes, by sandbox_id. */
  findEver(call: KeyCall, params: Record<string, string>): ScreenTarget;
  /**
   * The running guest's link, usable until `work` is done; observation does not keep a sandbox from being idle. Throws invalid_state,
   * room_destroying, disk_full, guest_unreachable.
   */
  withLink<T>(target: ScreenTarget, work: (link: GuestLink) => Promise<T>): Promise<T>;
  /** Resolves with the sandbox's state once it is not running any more; never settles if `signal` aborts first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** Marks the sandbox as in use, and not idle, until `work` is done. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
}

export interface ScreenDeps {
  /** Mark in tickets that routes them to this host of a cluster; null on a single host. */
  ticketMark: string | null;
  database: Database;
  log: Log;
  paths: Pick<Paths, "recordings">;
  /** An organization's live rooms. */
  roomsOf(orgId: OrgId): readonly RoomUid[];
  /** Whether the disk has space for further recordings. */
  hasSpace(): boolean;
  sandboxes: SandboxAccess;
  /**
   * A machine that encodes films, for the duration of `work`; organizations take turns. Throws template_not_found, insufficient_capacity.
   */
  withFilmGuest<T>(orgId: OrgId, work: (link: GuestLink) => Promise<T>): Promise<T>;
  /** Whether a previously valid key is still valid. */
  isCurrentKey(keyId: KeyId): boolean;
  /** Calls `cut` when the key or session becomes invalid; the returned function unsubscribes. */
  hold(held: KeyId | HeldSession, cut: () => void): () => void;
  /** How long an unused connection is kept; a minute if absent. */
  unusedMs?: number;
  /** Memory limit for the frames of all screens; 512 MiB if absent. */
  frameBytes?: number;
}
