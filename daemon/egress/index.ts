/** Owns egress: what leaves the sandboxes of this host, each by a guard of its own. Its lists are the sandboxes' rows. */
import type { Stream } from "../../shared/agent-protocol/link.ts";
import type { GuestRequest } from "../../shared/agent-protocol/messages.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import type { OrgId, RoomUid, SandboxId } from "../../shared/ids.ts";
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import type { Database } from "../db/transact.ts";
import type { GuestRequests } from "../host/guest-link/handshake.ts";
import { readRange } from "./addresses.ts";
import type { Denial } from "./denials.ts";
import { Guard } from "./guard.ts";
import { makeIsHosts } from "./host-addresses.ts";
import type { Ground } from "./policy.ts";
import { HostResolver } from "./resolver.ts";
import { addUsage, type Traffic, usageOf } from "./store.ts";

export { MAX_CONNECTIONS } from "./guard.ts";
export type { Traffic } from "./store.ts";

const WRITE_EVERY_MS = 5_000;

/** Whose traffic it is. */
export interface EgressSandbox {
  sandbox_id: SandboxId;
  org_id: OrgId;
  room_uid: RoomUid;
  room_id: string;
  agent_id: string;
}

export interface EgressDeps {
  database: Database;
  log: Log;
  /** Comma-separated ranges. */
  privateRanges: string;
  hostsFile: string;
  mibPerSecond: number;
  onDenied(sandbox: EgressSandbox, details: Denial & { count: number }): void;
}

export interface Egress {
  /** What becomes of what the sandbox's guest asks; `allowlist` is in force until there is another. */
  serve(sandbox: EgressSandbox, allowlist: readonly string[]): GuestRequests;
  /** Puts a list in force, for connections that are open too. */
  setAllowlist(sandboxId: string, allowlist: readonly string[]): void;
  trafficOf(sandboxId: string): Traffic & { open_connections: number };
  /** Closes what a sandbox has open: it is gone. */
  drop(sandboxId: string): void;
  /** Writes what is counted, and closes everything. */
  stop(): Promise<void>;
}

/** Throws when the configured ranges are none. */
export function makeEgress(deps: EgressDeps): Egress {
  const resolver = new HostResolver(deps.hostsFile);
  const ground: Ground = { privateRanges: readRanges(deps.privateRanges), isHosts: makeIsHosts() };
  const bytesPerSecond = deps.mibPerSecond === 0 ? Number.MAX_SAFE_INTEGER : deps.mibPerSecond * 1024 * 1024;
  const guards = new Map<string, Guard>();
  const counted = new Map<string, Parameters<typeof addUsage>[1]>();

  const write = async () => {
    const usage = [...counted.values()];
    counted.clear();
    if (usage.length === 0) return;
    try {
      await deps.database.commit((queries) => {
        for (const each of usage) addUsage(queries, each);
      });
    } catch (error) {
      deps.log.error("egress usage not written", { error: describeError(error) });
    }
  };
  const writing = setInterval(() => void write(), WRITE_EVERY_MS);

  const drop = (sandboxId: string) => {
    guards.get(sandboxId)?.close();
    guards.delete(sandboxId);
  };

  return {
    serve: (sandbox, allowlist) => {
      const { sandbox_id, org_id, room_uid } = sandbox;
      drop(sandbox_id);
      const guard = new Guard(allowlist, {
        ground,
        resolver,
        bytesPerSecond,
        record: (denial) => deps.onDenied(sandbox, denial),
        count: ({ sent, received, connections }) => {
          let sum = counted.get(sandbox_id);
          if (!sum) {
            sum = { sandbox_id, org_id, room_uid, sent_bytes: 0, received_bytes: 0, connections: 0 };
            counted.set(sandbox_id, sum);
          }
          sum.sent_bytes += sent;
          sum.received_bytes += received;
          sum.connections += connections;
        },
      });
      guards.set(sandbox_id, guard);
      return requestsTo(guard, deps.log);
    },
    setAllowlist: (sandboxId, allowlist) => guards.get(sandboxId)?.setAllowlist(allowlist),
    trafficOf: (sandboxId) => {
      const written = usageOf(deps.database.queries, sandboxId);
      const more = counted.get(sandboxId);
      return {
        sent_bytes: written.sent_bytes + (more?.sent_bytes ?? 0),
        received_bytes: written.received_bytes + (more?.received_bytes ?? 0),
        connections: written.connections + (more?.connections ?? 0),
        open_connections: guards.get(sandboxId)?.connections ?? 0,
      };
    },
    drop,
    stop: async () => {
      clearInterval(writing);
      for (const sandboxId of [...guards.keys()]) drop(sandboxId);
      await write();
    },
  };
}

type EgressMethod = Exclude<GuestRequest["method"], "room_call">;

/** What the guest says is of its own making: nothing about a request is sure. */
function requestsTo(guard: Guard, log: Log): GuestRequests {
  const handlers: Record<EgressMethod, (stream: Stream, request: object) => Promise<void>> = {
    egress_resolve: (stream, request) => guard.resolve(stream, request),
    egress_connect: (stream, request) => guard.connect(stream, request),
  };
  return (stream, request) => {
    const { method } = Object(request) as { method?: unknown };
    const known = typeof method === "string" && Object.hasOwn(handlers, method);
    if (!known) return stream.fail(StreamErrorCode.unknown_method, "there is no such method");
    handlers[method as EgressMethod](stream, request as object).catch((error: unknown) => {
      log.error("egress", { error: describeError(error) });
      stream.fail(StreamErrorCode.internal, "the host failed");
    });
  };
}

function readRanges(text: string) {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const range = readRange(part);
      if (!range) throw new Error(`egress.private_ranges: ${part} is neither an address nor a CIDR`);
      return range;
    });
}
