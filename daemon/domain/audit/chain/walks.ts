/** Pieces of the event loop for going through a chain. */
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { type ChainKey, orgOfChain } from "./chain-key.ts";

/** The chain's organization takes turns with others. */
export function walkOf(key: ChainKey, signal?: AbortSignal): Pieces {
  const orgId = orgOfChain(key);
  return new Pieces(loopTime, orgId === null ? "host" : ownerOf(orgId), "audit", signal && { signal });
}
