/**
 * The decision on one connection of a sandbox: its allowed target, or the reason of its refusal. The guard and the explanation both use it.
 */
import { type Address, readAddress } from "./addresses.ts";
import type { Policy, Verdict } from "./allowlist.ts";
import type { Denial } from "./denials.ts";
import { canonicalName } from "./names.ts";

export interface Target {
  /** Null for an address. */
  name: string | null;
  port: number;
  addresses: Address[];
  /** The name that all sent data must be for; null if the address itself is allowed. */
  bound: string | null;
}

export interface Refusal {
  verdict: Exclude<Verdict, "allowed">;
  where: Pick<Denial, "host" | "ip">;
}

export interface DecideDeps {
  /** The current list, which may change during a lookup. */
  policy(): Policy;
  /** Addresses of a canonical name; empty if the name does not exist. Rejects if the lookup fails. */
  resolve(name: string): Promise<Address[]>;
}

/** Throws if an allowed name cannot be resolved. */
export async function decide(
  host: string,
  port: number,
  { policy: current, resolve }: DecideDeps,
): Promise<Target | Refusal> {
  const literal = readAddress(host);
  if (literal) {
    const verdict = current().ofAddress(literal, port);
    if (verdict === "allowed") return { name: null, port, addresses: [literal], bound: null };
    return { verdict, where: { host: null, ip: literal.text } };
  }
  const name = canonicalName(host);
  if (name === null || !current().allowsName(name, port)) {
    return { verdict: "not_listed", where: { host: name ?? printable(host), ip: null } };
  }
  const found = await resolve(name);
  const policy = current();
  if (!policy.allowsName(name, port)) return { verdict: "not_listed", where: { host: name, ip: null } };
  // An address that is itself allowed may be used under any name.
  const free = found.filter((address) => policy.ofAddress(address, port) === "allowed");
  if (free.length > 0) return { name, port, addresses: free, bound: null };
  const allowed = found.filter((address) => policy.ofResolved(address, port) === "allowed");
  if (allowed.length > 0) return { name, port, addresses: allowed, bound: name };
  if (found.length === 0) throw new Error("there is no such name");
  // The address behind a name is hidden from the guest and its organization.
  return { verdict: "blocked_address", where: { host: name, ip: null } };
}

function printable(host: string): string {
  return host.replaceAll(/[^\x21-\x7e]/g, "?");
}
