/**
 * Exposed ports: servers in sandboxes that remote clients reach by URL. Requests arrive in edge/http/port-requests.ts; http/ and websocket/
 * exchange them with the server in the guest.
 */

import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { Bound } from "../../core/call/operation.ts";
import type { Queries } from "../../db/client.ts";
import { makeBrowser } from "./browser.ts";
import { Connections } from "./connections.ts";
import type { PortDeps } from "./deps.ts";
import { makeExpose } from "./expose.ts";
import { Exposures } from "./exposures.ts";
import { type Gate, makeGate } from "./gate.ts";
import { makeList } from "./list.ts";
import type { PortParts } from "./parts.ts";
import { toShownPort } from "./record.ts";
import { Refusals } from "./refusals.ts";
import { listPorts } from "./store.ts";
import { PortTokens } from "./tokens.ts";
import { makeUnexpose } from "./unexpose.ts";

export type { PortMaker } from "./deps.ts";
export { PORT_RULE, portsMade } from "./made.ts";
export { deleteOfSandbox as forgetPorts, insertPort, locateLabel, roomPorts } from "./store.ts";
export type { PortRow } from "./table.ts";
export { Traffic } from "./traffic.ts";

export interface Ports {
  operations: Bound[];
  gate: Gate;
  /** Recovers the ports that an earlier daemon exposed; sandboxes are recovered before. */
  recover(): void;
  /** Closes open connections; exposed ports stay exposed. */
  stop(): void;
}

/** A sandbox's ports, for its record. */
export const makeShownPorts =
  (queries: Queries, { urls, traffic }: Pick<PortDeps, "urls" | "traffic">) =>
  (sandboxId: string): ShownPort[] =>
    listPorts(queries, sandboxId).map((row) => toShownPort(row, urls(), traffic.of(row)));

export function makePorts(deps: PortDeps): Ports {
  const tokens = new PortTokens(deps.keyFile);
  const connections = new Connections(deps.sandboxes, deps.rate, deps.traffic);
  const exposures = new Exposures(deps, connections);
  const refusals = new Refusals(deps);
  const parts: PortParts = { ...deps, tokens, connections, exposures, refusals };
  return {
    operations: [makeExpose(parts), makeList(parts), makeUnexpose(parts), makeBrowser(parts)],
    gate: makeGate(parts),
    recover: () => exposures.recover(),
    stop: () => {
      exposures.stop();
      refusals.stop();
      connections.cutAll("the service is stopping");
    },
  };
}
