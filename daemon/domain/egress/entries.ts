/** Syntax of an egress allowlist: its entries, and the reasons for which one is refused. */
import { getDomain, getPublicSuffix } from "tldts";
import { type Range, readRange, UNNAMEABLE, within } from "./addresses.ts";
import { canonicalName, looksNumeric } from "./names.ts";

const MAX_CHARACTERS = 300;

export type Entry = (
  | { kind: "any" }
  | ({ kind: "range" } & Range)
  | { kind: "name"; name: string; wildcard: boolean }
) & {
  /** Null is every port. */
  port: number | null;
};

/** Why an entry is invalid: words that follow its name in a sentence. */
export const REFUSALS = {
  length: "is too long",
  url: "is a URL; write the host name alone",
  port: "has a port outside 1 to 65535",
  prefix: "has an invalid prefix length",
  range: "is a loopback, link-local or multicast address",
  numeric: "is an address in an unusual spelling; write it as a.b.c.d",
  loopback: "is the guest's or the host's own loopback",
  suffix: "is a wildcard over a public suffix",
  syntax: "is neither an address, a CIDR nor a host name",
} as const;
interface RefusedEntry {
  refused: keyof typeof REFUSALS;
}

/** Parses an entry, or returns why it is invalid. */
export function readEntry(text: string): Entry | RefusedEntry {
  if (text === "*") return { kind: "any", port: null };
  if (text.length > MAX_CHARACTERS) return { refused: "length" };
  if (text.includes("://") || (text.includes("/") && !/\/\d{1,3}\]?(:\d*)?$/.test(text))) return { refused: "url" };
  const { host, port } = splitPort(text);
  if (port !== null && !(port >= 1 && port <= 65_535)) return { refused: "port" };
  const [base = ""] = host.split("/");
  if (readRange(base)) {
    const range = readRange(host);
    if (!range) return { refused: "prefix" };
    if (UNNAMEABLE.some((unnameable) => within(range, unnameable))) return { refused: "range" };
    return { kind: "range", ...range, port };
  }
  return host.includes("/") ? { refused: "syntax" } : readName(host, port);
}

function readName(host: string, port: number | null): Entry | RefusedEntry {
  const wildcard = host.startsWith("*.");
  const written = wildcard ? host.slice(2) : host;
  if (looksNumeric(written)) return { refused: "numeric" };
  const name = canonicalName(written);
  if (name === null) return { refused: "syntax" };
  if (name === "localhost" || name.endsWith(".localhost")) return { refused: "loopback" };
  if (wildcard && isPublicSuffix(name)) return { refused: "suffix" };
  return { kind: "name", name, wildcard, port };
}

/** Whether names directly below it belong to different owners, as names below a single label do. */
function isPublicSuffix(name: string): boolean {
  const options = { allowPrivateDomains: true };
  return !name.includes(".") || getPublicSuffix(name, options) === name || getDomain(name, options) === null;
}

/** `host:port`, `[v6]:port`, or without a port. */
function splitPort(text: string): { host: string; port: number | null } {
  const bracketed = /^\[([^\]]*)\](?::(\d*))?$/.exec(text);
  if (bracketed) return { host: bracketed[1] ?? "", port: bracketed[2] === undefined ? null : portOf(bracketed[2]) };
  const single = /^([^:]+):(\d*)$/.exec(text);
  if (single) return { host: single[1] ?? "", port: portOf(single[2] ?? "") };
  return { host: text, port: null };
}

function portOf(digits: string): number {
  return digits === "" ? 0 : Number(digits);
}
