/** Owners of event loop time: organizations, networks of unauthenticated clients, and the service itself. */

/**
 * Owner of loop time.
 *
 * - `org:ID`: an organization, with its calls, guests, uploads and writes.
 * - `net:NETWORK`: clients of a network that are not authenticated yet. All networks together have the weight of one organization.
 * - `host`: the service's own upkeep.
 */
export type OwnerName = `org:${string}` | `net:${string}` | "host";

export const ownerOf = (orgId: string): OwnerName => `org:${orgId}`;

/** An owner's account: all networks share one account. */
export const accountOf = (owner: OwnerName): string => (owner.startsWith("net:") ? "net" : owner);
