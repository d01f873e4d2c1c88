/** What exposed ports need of others. */
import type { SandboxState, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { KeyId, OrgId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { KeyCall } from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { PortUrls } from "./record.ts";

/** The sandbox that a call is about. */
export interface PortTarget {
  room: RoomTarget;
  row: { sandbox_id: string; agent_id: string; org_id: OrgId; state: SandboxState };
}

/** So many a second, and so many at once after a pause; 0 a second is any number. */
export interface RequestRate {
  perSecond: number;
  burst: number;
}

/** What ports need of sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): PortTarget;
  /** The running guest's link, to be used until `work` is done; one that rests is woken where there is a reason. Throws guest_unreachable, and what its resume throws. */
  withGuest<T>(sandboxId: string, work: (link: GuestLink) => Promise<T>, reason?: WakeReason): Promise<T>;
  /** The sandbox is in use until `work` is done, and not idle. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /** Resolves with its state once the sandbox is not running any more; never when `signal` comes first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** Resolves with its state once the sandbox will not run again; never when `signal` comes first. */
  ended(sandboxId: string, signal: AbortSignal): Promise<string>;
}

/** `key_id` is the first of a line of keys. */
export interface PortMaker {
  org_id: OrgId;
  key_id: KeyId;
}

export interface PortDeps {
  isMakerGood(queries: Queries, maker: PortMaker): boolean;
  /** Calls `cut` once the access of a port's maker is over. Call the returned function to release it. */
  holdMaker(maker: PortMaker, cut: () => void): () => void;
  database: Database;
  log: Log;
  sandboxes: SandboxAccess;
  /** Where the key of the tokens is kept. */
  keyFile: string;
  urls(): PortUrls;
  /** Requests to the ports of a sandbox. */
  rate: RequestRate;
}
