/**
 * The client's address of a request: the peer's or, if that is a trusted proxy, the one in X-Forwarded-For. Each proxy appends the address
 * of its own client, so the header is read from the end up to the first untrusted address: everything before that is the client's own
 * claim.
 */
import { ConfigError } from "../../core/config/config.ts";
import { type Address, contains, type Range, readAddress, readRanges } from "../../domain/egress/addresses.ts";

const KEY = "http.trusted_proxies";
const MAX_RANGES = 64;
/** Proxies behind each other; further ones are ignored. */
const MAX_HOPS = 16;

/** Throws ConfigError. */
export function trustedProxies(text: string): Range[] {
  const ranges = readRanges(text, (part) => {
    throw new ConfigError(`${KEY}: ${part} is neither an address nor a range such as "10.0.0.0/8"`);
  });
  if (ranges.length > MAX_RANGES) throw new ConfigError(`${KEY}: at most ${MAX_RANGES} ranges`);
  return ranges;
}

export type ClientAddress = (peer: string | null, headers: Headers) => string | null;

export function makeClientAddress(trusted: readonly Range[]): ClientAddress {
  if (trusted.length === 0) return (peer) => peer;
  const isTrusted = (address: Address | null) => address !== null && trusted.some((range) => contains(range, address));
  return (peer, headers) => {
    if (peer === null || !isTrusted(readAddress(peer))) return peer;
    let client = peer;
    const hops = (headers.get("x-forwarded-for") ?? "").split(",").slice(-MAX_HOPS).reverse();
    for (const hop of hops) {
      const address = readAddress(withoutPort(hop.trim()));
      // An unparsable hop ends the chain: the last valid address is the client's.
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
