/** Owns what leaves a guest that is nobody's sandbox, as one that makes a template: by the same decisions. Nothing of it is counted or kept. */
import type { Log } from "../../core/log.ts";
import type { GuestRequests } from "../../host/guest-link/handshake.ts";
import type { Denial } from "./denials.ts";
import type { EgressDeps } from "./deps.ts";
import { Guard } from "./guard.ts";
import { groundOf, paceOf, requestsTo } from "./requests.ts";
import { HostResolver } from "./resolver.ts";

/** It shares its process's places with no one. */
const ASKER = { org_id: "", sandbox_id: "" };

export interface AloneDeps extends Pick<EgressDeps, "privateRanges" | "hostsFile" | "mibPerSecond"> {
  log: Log;
}

/** What becomes of what the guest asks, until it is closed. Each refusal is told by itself. Throws when the configured ranges are none. */
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
