/** Egress of the sandboxes of this host, one guard each. The allowlists are stored in the sandboxes' rows. */

import type { SandboxId } from "../../../shared/ids.ts";
import { monotonicMs, startInterval, stopTimer } from "../../core/clock.ts";
import type { GuestRequests } from "../../host/guest-link/handshake.ts";
import { USAGE_WRITE_SECONDS } from "../orgs/index.ts";
import { Policy } from "./allowlist.ts";
import type { EgressDeps, EgressSandbox } from "./deps.ts";
import { type Destination, type Explanation, explain } from "./explain.ts";
import { Guard } from "./guard.ts";
import type { Network } from "./network.ts";
import { Networks } from "./networks.ts";
import { groundOf, paceOf, requestsTo } from "./requests.ts";
import { HostResolver } from "./resolver.ts";
import { type Traffic, trafficOf } from "./store.ts";
import { NO_TRAFFIC, sumOf, Tally } from "./tally.ts";

export { readPlace, withoutNetwork } from "./explain.ts";
export { MAX_CONNECTIONS } from "./guard.ts";
export { forgetTraffic, type Traffic } from "./store.ts";

export interface Egress {
  /** Handler of the requests of the sandbox's guest; `allowlist` is in force until it is replaced. */
  serve(sandbox: EgressSandbox, allowlist: readonly string[]): GuestRequests;
  /** Applies a list, also to open connections. */
  setAllowlist(sandboxId: string, allowlist: readonly string[]): void;
  /** Whether a connection is allowed, and why; `allowlist` is the sandbox's. */
  explain(
    sandbox: Pick<EgressSandbox, "org_id" | "sandbox_id">,
    allowlist: readonly string[],
    place: Destination,
    port: number | null,
  ): Promise<Explanation>;
  trafficOf(sandboxId: string): Traffic & { open_connections: number };
  /** Monotonic time of its last traffic; null if it had none since the daemon started. */
  lastTrafficOf(sandboxId: string): number | null;
  /** Destinations of its connections and refusals, also after the sandbox has gone. */
  networkOf(sandbox: Pick<EgressSandbox, "sandbox_id" | "created_at">): ReturnType<Network["shown"]>;
  /** Totals of all sandboxes since the daemon started. */
  figures(): Traffic & { open_connections: number; denied: number };
  /** Closes the connections of a removed sandbox. */
  drop(sandboxId: string): void;
  /** Writes the pending counts, and closes everything. */
  stop(): Promise<void>;
}

/** Throws if the configured ranges are invalid. */
export function makeEgress(deps: EgressDeps): Egress {
  const resolver = new HostResolver(deps.hostsFile, "guest");
  const ground = groundOf(deps.privateRanges);
  const bytesPerSecond = paceOf(deps.mibPerSecond);
  const guards = new Map<string, Guard>();
  const networks = new Networks(deps.database.queries);
  const tally = new Tally(deps, networks);
  let all = NO_TRAFFIC;
  let denied = 0;
  const writing = startInterval(() => void tally.write(), USAGE_WRITE_SECONDS * 1000);

  const lastAt = new Map<string, number>();
  const drop = (sandboxId: string) => {
    lastAt.delete(sandboxId);
    guards.get(sandboxId)?.close();
    guards.delete(sandboxId);
    networks.end(sandboxId as SandboxId);
  };

  return {
    serve: (sandbox, allowlist) => {
      const { sandbox_id, place } = sandbox;
      drop(sandbox_id);
      const guard = new Guard(allowlist, {
        ground,
        resolve: (name) => resolver.resolve(name, sandbox),
        records: (name, type) => resolver.records(name, type, sandbox),
        bytesPerSecond,
        record: (denial) => {
          denied += denial.count;
          deps.onDenied(sandbox, denial);
        },
        opened: (endpoint) => {
          // A connection attempt or a lookup may complete after the guest has gone.
          const onTraffic = guards.get(sandbox_id) === guard ? networks.of(sandbox).opened(endpoint) : () => {};
          const count = (traffic: Traffic) => {
            all = sumOf(all, traffic);
            tally.count(sandbox_id, place, traffic);
            if (guards.get(sandbox_id) === guard) lastAt.set(sandbox_id, monotonicMs());
            onTraffic(traffic);
          };
          count({ ...NO_TRAFFIC, connections: 1 });
          return count;
        },
        refused: (denial) => {
          if (guards.get(sandbox_id) === guard) networks.of(sandbox).refused(denial);
        },
      });
      guards.set(sandbox_id, guard);
      return requestsTo(guard, deps.log);
    },
    setAllowlist: (sandboxId, allowlist) => guards.get(sandboxId)?.setAllowlist(allowlist),
    explain: (sandbox, allowlist, place, port) =>
      explain(place, port, {
        policy: new Policy(allowlist, ground),
        resolve: (name) => resolver.resolve(name, sandbox),
      }),
    trafficOf: (sandboxId) => {
      const written = trafficOf(deps.database.queries, sandboxId);
      const traffic = sumOf(written, tally.of(sandboxId));
      return { ...traffic, open_connections: guards.get(sandboxId)?.connections ?? 0 };
    },
    lastTrafficOf: (sandboxId) => lastAt.get(sandboxId) ?? null,
    networkOf: ({ sandbox_id, created_at }) => networks.shown(sandbox_id, created_at),
    figures: () => ({
      ...all,
      open_connections: [...guards.values()].reduce((sum, { connections }) => sum + connections, 0),
      denied,
    }),
    drop,
    stop: async () => {
      stopTimer(writing);
      for (const sandboxId of [...guards.keys()]) drop(sandboxId);
      await tally.writeAll();
    },
  };
}
