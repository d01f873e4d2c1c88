/** Notifications of grown chains: one key per chain, and one per room (by uid) for records about that room. */
import type { Bells } from "../../../core/concurrency/notifier.ts";
import type { Grown } from "../store.ts";
import type { ChainKey } from "./chain-key.ts";

/** Rung when the organization's chain has grown. */
export const CHAIN_BELL = "chain";
export const bellGroup = (chain: ChainKey) => `audit ${chain}`;

/** Wakes the readers that wait for new records of these chains. */
export function ringReaders(bells: Bells, chains: Grown): void {
  for (const [chain, rooms] of chains) {
    for (const key of [CHAIN_BELL, ...rooms]) bells.ring(bellGroup(chain), key);
  }
}
