/** Egress of a guest without a sandbox, such as a template build: same decisions, without counts or stored data. */
import type { Log } from "../../core/log.ts";
import type { GuestRequests } from "../../host/guest-link/handshake.ts";
import type { Denial } from "./denials.ts";
import type { EgressDeps } from "./deps.ts";
import { Guard } from "./guard.ts";
import { groundOf, paceOf, requestsTo } from "./requests.ts";
import { HostResolver } from "./resolver.ts";

/** Its resolver, and the slots in it, have no other user. */
const ASKER = { org_id: "", sandbox_id: "" };

export interface AloneDeps extends Pick<EgressDeps, "privateRanges" | "hostsFile" | "mibPerSecond"> {
  log: Log;
}

/**
 * Handler of the guest's requests, until it is closed. Each refusal is reported individually. Throws if the configured ranges are invalid.
 */
export function serveAlone(
  { privateRanges, hostsFile, mibPerSecond, log }: AloneDeps,
  allowlist: readonly string[],
  refused: (denial: Denial) => void,
): { requests: GuestRequests; close(): void } {
  const resolver = new HostResolver(hostsFile, "guest");
  const guard = new Guard(allowlist, {
    ground: groundOf(privateRanges),
    resolve: (name) => resolver.resolve(name, ASKER),
    records: (name, type) => resolver.records(name, type, ASKER),
    bytesPerSecond: paceOf(mibPerSecond),
    record: () => {},
    opened: () => () => {},
    refused,
  });
  return { requests: requestsTo(guard, log), close: () => guard.close() };
}
