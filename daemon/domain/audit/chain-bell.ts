/** Owns the bells of chains: each rings when its chain has grown, and that of a room, by its uid, when it was about the room. */
import type { Bells } from "../../core/bells.ts";
import type { ChainKey } from "./chain-key.ts";
import type { Grown } from "./store.ts";

/** Rung when the organization's chain has grown. */
export const CHAIN_BELL = "chain";
export const bellGroup = (chain: ChainKey) => `audit ${chain}`;

/** Wakes who waits for what these chains have grown by. */
export function ringReaders(bells: Bells, chains: Grown): void {
  for (const [chain, rooms] of chains) {
    for (const key of [CHAIN_BELL, ...rooms]) bells.ring(bellGroup(chain), key);
  }
}
