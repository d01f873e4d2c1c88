/** Addresses and ports of the guest's egress: the targets to which its rules redirect connections and DNS queries. */

/**
 * The guest's own address on its interface, that of a host behind a translator (RFC 7335). Traffic of containers is redirected to it: a
 * packet that came from another interface reaches no loopback address.
 */
export const OWN_ADDRESS = "192.0.0.2";

/** The agent accepts redirected connections on it. */
export const INTERCEPT_PORT = 65_001;

/** The agent's DNS resolver. */
export const RESOLVER = { address: "127.0.0.53", port: 53 } as const;
