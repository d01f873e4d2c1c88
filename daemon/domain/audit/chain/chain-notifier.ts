/** Notifications of grown chains: one key per chain, and one per room (by uid) for records about that room. */
import type { Notifier } from "../../../core/concurrency/notifier.ts";
import type { Grown } from "../store.ts";
import type { ChainKey } from "./chain-key.ts";

/** Notified when the organization's chain has grown. */
export const CHAIN_TOPIC = "chain";
export const topicGroup = (chain: ChainKey) => `audit ${chain}`;

/** Wakes the readers that wait for new records of these chains. */
export function notifyReaders(bells: Notifier, chains: Grown): void {
  for (const [chain, rooms] of chains) {
    for (const key of [CHAIN_TOPIC, ...rooms]) bells.ring(topicGroup(chain), key);
  }
}
