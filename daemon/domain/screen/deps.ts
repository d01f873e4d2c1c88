/** What screens need of others. */
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import type { KeyId, OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { HeldSession, KeyCall } from "../../core/operation.ts";
import type { Paths } from "../../core/paths.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";

/** The sandbox that a call is about. */
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
  /** By a session, which only looks. */
  isLookedAt: boolean;
}

/** What screens need of sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): ScreenTarget;
  /** The same, also of one that was destroyed, by its sandbox_id. */
  findEver(call: KeyCall, params: Record<string, string>): ScreenTarget;
  /** The running guest's link, to be used until `work` is done; who only looks keeps no sandbox from being idle. Throws invalid_state, room_destroying, disk_full, guest_unreachable. */
  withLink<T>(target: ScreenTarget, work: (link: GuestLink) => Promise<T>): Promise<T>;
  /** Resolves with its state once the sandbox is not running any more; never when `signal` comes first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** The sandbox is in use until `work` is done, and not idle. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
}

export interface ScreenDeps {
  /** Stands in tickets where there are several hosts, and leads to this one; null: there are not. */
  ticketMark: string | null;
  database: Database;
  log: Log;
  paths: Pick<Paths, "recordings">;
  /** An organization's rooms that are not destroyed. */
  roomsOf(orgId: OrgId): readonly RoomUid[];
  /** Whether the disk has space for more. */
  hasSpace(): boolean;
  sandboxes: SandboxAccess;
  /** A machine that makes films, for as long as `work` takes; organizations take turns. Throws template_not_found, insufficient_capacity. */
  withFilmGuest<T>(orgId: OrgId, work: (link: GuestLink) => Promise<T>): Promise<T>;
  /** Whether a key that was good is so still. */
  isCurrentKey(keyId: KeyId): boolean;
  /** Calls `cut` when the key or session is no longer good; what is returned lets go of it. */
  hold(held: KeyId | HeldSession, cut: () => void): () => void;
  /** How long a connection that nobody uses is kept; a minute if absent. */
  unusedMs?: number;
  /** What the frames of all screens may take; 512 MiB if absent. */
  frameBytes?: number;
}
