/** Owns where the guest's way out is: what its rules turn connections and questions to. */

/**
 * The guest's own address on its interface, of a host behind a translator (RFC 7335). What containers send is turned to it: a packet that
 * came from another interface reaches no loopback address.
 */
export const OWN_ADDRESS = "192.0.0.2";

/** Where the agent takes redirected connections. */
export const INTERCEPT_PORT = 65_001;

/** Where it answers for names. */
export const RESOLVER = { address: "127.0.0.53", port: 53 } as const;
