/**
 * Owns whose address a request comes from: the peer's, or, where that is a proxy that the operator trusts, what it says in
 * X-Forwarded-For. Each proxy adds the address that it was asked from at the end, so it is read from there, and no further than to
 * the first that is not trusted: what stands before that is the client's own claim.
 */
import { ConfigError } from "../../core/config.ts";
import { type Address, contains, type Range, readAddress, readRanges } from "../../domain/egress/addresses.ts";

const KEY = "http.trusted_proxies";
const MOST_RANGES = 64;
/** Proxies behind each other; further ones are not looked for. */
const MOST_HOPS = 16;

/** Throws ConfigError. */
export function trustedProxies(text: string): Range[] {
  const ranges = readRanges(text, (part) => {
    throw new ConfigError(`${KEY}: ${part} is neither an address nor a range such as "10.0.0.0/8"`);
  });
  if (ranges.length > MOST_RANGES) throw new ConfigError(`${KEY}: at most ${MOST_RANGES} ranges`);
  return ranges;
}

export type ClientAddress = (peer: string | null, headers: Headers) => string | null;

export function makeClientAddress(trusted: readonly Range[]): ClientAddress {
  if (trusted.length === 0) return (peer) => peer;
  const isTrusted = (address: Address | null) => address !== null && trusted.some((range) => contains(range, address));
  return (peer, headers) => {
    if (peer === null || !isTrusted(readAddress(peer))) return peer;
    let client = peer;
    const hops = (headers.get("x-forwarded-for") ?? "").split(",").slice(-MOST_HOPS).reverse();
    for (const hop of hops) {
      const address = readAddress(withoutPort(hop.trim()));
      // Who cannot be read was asked by nobody that can be told.
      if (!address) return client;
      client = address.text;
      if (!isTrusted(address)) return client;
    }
    return client;
  };
}

/** Some proxies add the client's port. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
}
