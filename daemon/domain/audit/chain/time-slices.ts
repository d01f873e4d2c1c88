/** Event-loop pieces for traversing an audit chain. */
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { type ChainKey, orgOfChain } from "./chain-key.ts";

/** The pieces are charged to the chain's organization. */
export function walkOf(key: ChainKey, how: { signal?: AbortSignal } = {}): Pieces {
  const orgId = orgOfChain(key);
  return new Pieces(loopTime, orgId === null ? "host" : ownerOf(orgId), "audit", how);
}
