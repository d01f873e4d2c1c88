/**
 * Owns how an egress allowlist is written: which entries there are and which are refused.
 * Entries: address, CIDR, host name, `*.` and a name; each with an optional port.
 */
import { BlockList, isIP } from "node:net";
import type { RuleBreak } from "../core/operation.ts";
import type { SandboxRow } from "./table.ts";

const HOST = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Addresses that no entry may name. */
const never = new BlockList();
never.addSubnet("127.0.0.0", 8, "ipv4");
never.addSubnet("169.254.0.0", 16, "ipv4");
never.addSubnet("224.0.0.0", 4, "ipv4");
never.addSubnet("0.0.0.0", 8, "ipv4");
never.addAddress("::1", "ipv6");
never.addSubnet("fe80::", 10, "ipv6");
never.addSubnet("ff00::", 8, "ipv6");

export function egressRules(entries: readonly string[] | undefined): RuleBreak[] {
  return (entries ?? []).flatMap((entry, index) => {
    const reason = entry === "*" && entries?.length === 1 ? null : refusal(entry);
    const field = `egress_allowlist[${index}]`;
    return reason === null ? [] : [{ field, code: "invalid_egress_entry", message: `${field} ${reason}.` }];
  });
}

export function egressOf(
  entries: readonly string[] | undefined,
  guestNet: boolean,
  fallback: "public" | "none",
): Pick<SandboxRow, "egress_mode" | "egress_allowlist"> {
  if (!guestNet || entries?.length === 0) return { egress_mode: "none", egress_allowlist: [] };
  if (entries === undefined) return { egress_mode: fallback, egress_allowlist: [] };
  if (entries[0] === "*") return { egress_mode: "public", egress_allowlist: ["*"] };
  return { egress_mode: "allowlist", egress_allowlist: [...entries] };
}

/** Why an entry is refused, or null. */
function refusal(entry: string): string | null {
  if (entry.length > 300) return "is too long";
  if (entry.includes("://") || (entry.includes("/") && !/\/\d{1,3}(:\d+)?$/.test(entry))) {
    return "is a URL; write the host name alone";
  }
  const { host, port } = splitPort(entry);
  if (port !== null && (port < 1 || port > 65_535)) return "has a port outside 1 to 65535";
  const [address = "", prefix] = host.split("/");
  const family = isIP(address);
  if (family !== 0) {
    const bits = family === 4 ? 32 : 128;
    if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits))
      return "has a prefix that is none";
    if (never.check(address, family === 4 ? "ipv4" : "ipv6")) return "is a loopback, link-local or multicast address";
    return null;
  }
  if (prefix !== undefined) return "is neither an address, a CIDR nor a host name";
  const wildcard = host.startsWith("*.");
  const name = (wildcard ? host.slice(2) : host).replace(/\.$/, "");
  if (!HOST.test(name)) return "is neither an address, a CIDR nor a host name";
  if (name === "localhost" || name.endsWith(".localhost")) return "is the guest's or the host's own loopback";
  if (wildcard && !name.includes(".")) return "is a wildcard over a public suffix";
  return null;
}

/** `host:port`, `[v6]:port` or without a port. */
function splitPort(entry: string): { host: string; port: number | null } {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,6}))?$/.exec(entry);
  if (bracketed) return { host: bracketed[1] ?? "", port: bracketed[2] === undefined ? null : Number(bracketed[2]) };
  const single = /^([^:]+):(\d{1,6})$/.exec(entry);
  if (single) return { host: single[1] ?? "", port: Number(single[2]) };
  return { host: entry, port: null };
}
