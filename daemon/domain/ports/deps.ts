/** Injected dependencies of the module for exposed ports: the modules, settings and callbacks that it is given. */
import type { SandboxState, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { KeyId, OrgId } from "../../../shared/ids.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { Log } from "../../core/log.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { PortUrls } from "./record.ts";
import type { Traffic } from "./traffic.ts";

/** The sandbox of a call. */
export interface PortTarget {
  room: RoomTarget;
  row: { sandbox_id: string; agent_id: string; org_id: OrgId; state: SandboxState };
}

/** Requests per second, and the burst after a pause; 0 per second is unlimited. */
export interface RequestRate {
  perSecond: number;
  burst: number;
}

/** The functions of sandboxes that ports need. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): PortTarget;
  /**
   * Uses the running guest's link until `work` is done; a resting sandbox is woken if a reason is given. Throws guest_unreachable, and
   * errors of its resume.
   */
  withGuest<T>(sandboxId: string, work: (link: GuestLink) => Promise<T>, reason?: WakeReason): Promise<T>;
  /** The sandbox counts as used, not idle, until `work` is done. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /** Resolves with the state once the sandbox is no longer running; never if `signal` aborts first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** Resolves with the state once the sandbox will not run again; never if `signal` aborts first. */
  ended(sandboxId: string, signal: AbortSignal): Promise<string>;
}

/** `key_id` is the first of a line of keys. */
export interface PortMaker {
  org_id: OrgId;
  key_id: KeyId;
}

export interface PortDeps {
  isMakerGood(queries: Queries, maker: PortMaker): boolean;
  /** Calls `cut` when the access of a port's maker ends. The returned function unsubscribes. */
  holdMaker(maker: PortMaker, cut: () => void): () => void;
  database: Database;
  log: Log;
  sandboxes: SandboxAccess;
  /** File of the key for the tokens. */
  keyFile: string;
  urls(): PortUrls;
  traffic: Traffic;
  /** Rate limit of requests to the ports of a sandbox. */
  rate: RequestRate;
}
