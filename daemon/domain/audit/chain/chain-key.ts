/**
 * Keys of chains: the chain that a record belongs to. There is one for each organization, and one for records without an organization. Keys
 * are made in this file only, and the type excludes other strings; they are hashed with each record, so they never change.
 */

declare const brand: unique symbol;
export type ChainKey = string & { readonly [brand]: "chain" };

/** Key of the chain for records without an organization. */
const OF_NONE = "" as ChainKey;

/** The chain of an organization; null: the chain of records without one. */
export function chainKey(orgId: string | null): ChainKey {
  return orgId === null ? OF_NONE : (orgId as ChainKey);
}

/** The organization of a chain; null for the chain of records without one. */
export function orgOfChain(key: ChainKey): string | null {
  return key === OF_NONE ? null : key;
}
