/** The objects that the verbs of exposed ports share, besides the injected dependencies of their module. */
import type { Connections } from "./connections.ts";
import type { PortDeps } from "./deps.ts";
import type { Exposures } from "./exposures.ts";
import type { Refusals } from "./refusals.ts";
import type { PortTokens } from "./tokens.ts";

export interface PortParts extends PortDeps {
  tokens: PortTokens;
  connections: Connections;
  exposures: Exposures;
  refusals: Refusals;
}
