/**
 * Kinds of IP addresses, and address ranges. Source of the ranges: IANA's registries of special-purpose addresses (RFC 6890 and its
 * updates).
 */
import { isIP } from "node:net";

export interface Range {
  family: 4 | 6;
  /** Of 32 or 128 bits. */
  base: bigint;
  prefix: number;
}

export interface Address {
  family: 4 | 6;
  value: bigint;
  /** As it is usually written. */
  text: string;
}

/**
 * public: of the internet. private: of a private network, which an operator may allow sandboxes to reach. never: differs per host, or is
 * unusable.
 */
export type Kind = "public" | "private" | "never";

const BITS = { 4: 32, 6: 128 } as const;

/** Parses an address in its usual spelling only. An IPv4 address embedded in IPv6 is returned as IPv4. */
export function readAddress(text: string): Address | null {
  const family = isIP(text);
  if (family === 4) return { family: 4, value: valueOfIPv4(text), text };
  if (family !== 6 || text.includes("%")) return null;
  const value = valueOfIPv6(text);
  const inner = embeddedIPv4(value);
  if (inner !== null) return { family: 4, value: inner, text: textOfIPv4(inner) };
  return { family: 6, value, text: new URL(`http://[${text}]`).hostname.slice(1, -1) };
}

/** A client with an IPv6 address may have all of a network of 2^80: the allocation of one site (RFC 6177). */
const SITE_BITS = 80n;

/** The addresses that one client may have: an IPv4 address, or an IPv6 network. */
export function networkOf(ip: string): string {
  const address = readAddress(ip);
  return address?.family === 6 ? `${address.value >> SITE_BITS}::` : (address?.text ?? ip);
}

/** `10.0.0.0/8`, or an address alone, which is a range of one. Null if invalid. */
export function readRange(text: string): Range | null {
  const [base = "", length, ...more] = text.split("/");
  const address = readAddress(base);
  if (!address || more.length > 0) return null;
  const bits = BITS[address.family];
  if (length === undefined) return { family: address.family, base: address.value, prefix: bits };
  // An IPv4 range in IPv6 notation has 96 more prefix bits.
  const prefix = Number(length) - (isIP(base) === 6 ? BITS[6] - bits : 0);
  if (!/^\d{1,3}$/.test(length) || prefix < 0 || prefix > bits) return null;
  const shift = BigInt(bits - prefix);
  return { family: address.family, base: (address.value >> shift) << shift, prefix };
}

/** Comma-separated ranges; `refuse` throws for an invalid part. */
export function readRanges(text: string, refuse: (part: string) => never): Range[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "").map((part) => readRange(part) ?? refuse(part));
}

export function contains(range: Range, { family, value }: Pick<Address, "family" | "value">): boolean {
  if (range.family !== family) return false;
  const shift = BigInt(BITS[family] - range.prefix);
  return value >> shift === range.base >> shift;
}

/** Whether one range is contained in another. */
export function within(inner: Range, outer: Range): boolean {
  return inner.prefix >= outer.prefix && contains(outer, { family: inner.family, value: inner.base });
}

export function kindOf(address: Address): Kind {
  if (NEVER.some((range) => contains(range, address))) return "never";
  if (PRIVATE.some((range) => contains(range, address))) return "private";
  // Only this eighth of IPv6 is allocated.
  return address.family === 4 || contains(GLOBAL_UNICAST, address) ? "public" : "never";
}

const ranges = (...texts: string[]) =>
  texts.map((text) => {
    const range = readRange(text);
    if (!range) throw new Error(`${text} is not a range`);
    return range;
  });

/** Loopback, link-local (with metadata services), multicast: no allowlist may name them. */
export const UNNAMEABLE = ranges(
  ...["127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "0.0.0.0/8", "::1/128", "::/128", "fe80::/10", "ff00::/8"],
);

const NEVER = [
  ...UNNAMEABLE,
  ...ranges(
    ...["240.0.0.0/4", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "192.88.99.0/24"],
    // Tunnels (the inner address would escape every check); documentation; discard.
    ...["2001::/32", "2002::/16", "2001:db8::/32", "3fff::/20", "100::/64", "fec0::/10", "64:ff9b:1::/48"],
  ),
];

const PRIVATE = ranges(
  ...["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "fc00::/7", "2001::/23"],
  // The only metadata service with a public address.
  "168.63.129.16/32",
);

const [GLOBAL_UNICAST = { family: 6 as const, base: 0n, prefix: 0 }] = ranges("2000::/3");

const SPECIAL = [...NEVER, ...PRIVATE, GLOBAL_UNICAST];

/** First addresses of the parts that `others` and the ranges of each kind divide a range into. */
export function partsOf(range: Range, others: readonly Range[]): Address[] {
  const starts = new Set([range.base]);
  for (const { family, base, prefix } of [...SPECIAL, ...others]) {
    const end = base + (1n << BigInt(BITS[family] - prefix));
    for (const value of [base, end]) if (contains(range, { family, value })) starts.add(value);
  }
  return [...starts].map((value) => ({ family: range.family, value, text: "" }));
}

/** Whether a range is a single address. */
export const isSingle = ({ family, prefix }: Range): boolean => prefix === BITS[family];

/** ::ffff:a.b.c.d, ::a.b.c.d and 64:ff9b::a.b.c.d all mean a.b.c.d. */
function embeddedIPv4(value: bigint): bigint | null {
  const low = value & 0xffff_ffffn;
  const high = value >> 32n;
  if (high === 0xffffn || high === 0x64_ff9bn << 64n) return low;
  return high === 0n && low > 0xffffn ? low : null;
}

function valueOfIPv4(text: string): bigint {
  return text.split(".").reduce((value, part) => value * 256n + BigInt(part), 0n);
}

function textOfIPv4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join(".");
}

function valueOfIPv6(text: string): bigint {
  // The URL parser normalizes it to hexadecimal groups only.
  const [head = "", tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const [first, last] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  return [...first, ...Array<string>(zeros).fill("0"), ...last].reduce(
    (value, group) => value * 65_536n + BigInt(`0x${group}`),
    0n,
  );
}
