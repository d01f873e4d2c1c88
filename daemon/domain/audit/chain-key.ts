/**
 * Owns the keys of chains: which chain a record belongs to. There is one for each organization, and one for what belongs to none.
 * Keys are made here alone, and the type keeps other strings out; they are hashed with each record, so they never change.
 */

declare const brand: unique symbol;
export type ChainKey = string & { readonly [brand]: "chain" };

/** That of what belongs to no organization. */
const OF_NONE = "" as ChainKey;

/** The chain of an organization, or of what belongs to none (null). */
export function chainKey(orgId: string | null): ChainKey {
  return orgId === null ? OF_NONE : (orgId as ChainKey);
}

/** Whose chain it is; null for that of what belongs to none. */
export function orgOfChain(key: ChainKey): string | null {
  return key === OF_NONE ? null : key;
}
