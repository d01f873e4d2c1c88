/** Owns exposed ports: servers in sandboxes that clients elsewhere reach by URL. How HTTP gets there is in http/ and websocket/. */
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Bound, KeyCall } from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import type { Database } from "../../db/transact.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { Connections } from "./connections.ts";
import { makeExpose } from "./expose.ts";
import { Exposures } from "./exposures.ts";
import { type Gate, makeGate } from "./gate.ts";
import { makeList } from "./list.ts";
import { type PortUrls, toShownPort } from "./record.ts";
import { Refusals } from "./refusals.ts";
import { listPorts } from "./store.ts";
import { PortTokens } from "./tokens.ts";
import { makeUnexpose } from "./unexpose.ts";

/** The sandbox that a call is about. */
export interface PortTarget {
  room: RoomTarget;
  row: { sandbox_id: string; agent_id: string; org_id: OrgId; state: SandboxState };
}

/** What ports need of sandboxes. */
export interface SandboxAccess {
  /** Throws room_not_found, sandbox_not_found. */
  find(call: KeyCall, params: Record<string, string>): PortTarget;
  /** The running guest's link, to be used until `work` is done. Throws guest_unreachable. */
  withGuest<T>(sandboxId: string, work: (link: GuestLink) => Promise<T>): Promise<T>;
  /** The sandbox is in use until `work` is done, and not idle. */
  use<T>(sandboxId: string, work: () => Promise<T>): Promise<T>;
  /** Resolves with its state once the sandbox is not running any more; never when `signal` comes first. */
  stopped(sandboxId: string, signal: AbortSignal): Promise<string>;
  /** Resolves with its state once the sandbox will not run again; never when `signal` comes first. */
  ended(sandboxId: string, signal: AbortSignal): Promise<string>;
}

export interface PortDeps {
  database: Database;
  log: Log;
  sandboxes: SandboxAccess;
  /** Where the key of the tokens is kept. */
  keyFile: string;
  urls(): PortUrls;
}

/** What the verbs work with. */
export interface PortParts extends PortDeps {
  tokens: PortTokens;
  connections: Connections;
  exposures: Exposures;
  refusals: Refusals;
}

export interface Ports {
  operations: Bound[];
  gate: Gate;
  /** A sandbox's ports for its record. */
  shown(sandboxId: string): ShownPort[];
  /** Takes up what a daemon before this one has exposed; sandboxes are taken up before. */
  recover(): void;
  /** Cuts what is open; what is exposed stays so. */
  stop(): void;
}

export function makePorts(deps: PortDeps): Ports {
  const tokens = new PortTokens(deps.keyFile);
  const connections = new Connections(deps.sandboxes);
  const exposures = new Exposures(deps, connections);
  const refusals = new Refusals(deps);
  const parts: PortParts = { ...deps, tokens, connections, exposures, refusals };
  return {
    operations: [makeExpose(parts), makeList(parts), makeUnexpose(parts)],
    gate: makeGate(parts),
    shown: (sandboxId) => listPorts(deps.database.queries, sandboxId).map((row) => toShownPort(row, deps.urls())),
    recover: () => exposures.recover(),
    stop: () => {
      exposures.stop();
      refusals.stop();
      connections.cutAll("the service is stopping");
    },
  };
}
