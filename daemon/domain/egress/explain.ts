/**
 * The explanation of an egress decision: whether a connection to a host is allowed, and which setting allows or would allow it. It runs the
 * guard's own decision (decide.ts, allowlist.ts) and makes no connection. Without a port it tries each port of the list and one that the list
 * does not have; of a range it tries one address of each part in which all verdicts are equal.
 *
 * Only the caller's own addresses and names are returned, and a name that does not exist has the same result as one with private addresses
 * only: the host's DNS is not readable through it.
 */
import type { Static } from "@sinclair/typebox";
import type { egressExplain } from "../../../shared/api/egress.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { type Address, contains, isSingle, kindOf, partsOf, type Range, readAddress, readRange } from "./addresses.ts";
import type { Policy, Verdict } from "./allowlist.ts";
import { decide } from "./decide.ts";
import { canonicalName } from "./names.ts";

export type Explanation = Static<typeof egressExplain.output>;

/** Maximum number of ports of a list that are tried. */
const MAX_PORTS = 16;

const THREE_SETTINGS =
  "An internal server needs its name on the list if programs connect by name, its address or CIDR on the list, and its range in egress.private_ranges of the service.";
const NEVER_REACHABLE =
  "Loopback, link-local, multicast, documentation and other reserved addresses are never reachable from a sandbox; no setting allows them.";
const STAND_INS = readRange("198.18.0.0/15") as Range;

/** A name, an address or a range, parsed and as text for responses. */
export type Destination = { text: string } & (
  | { kind: "name" }
  | { kind: "address"; address: Address }
  | { kind: "range"; range: Range }
);

/** Null for text that is neither an address, a CIDR nor a host name. */
export function readPlace(text: string): Destination | null {
  const address = readAddress(text);
  if (address) return { kind: "address", address, text: address.text };
  const range = text.includes("/") ? readRange(text) : null;
  if (range && isSingle(range)) return readPlace(text.slice(0, text.indexOf("/")));
  if (range) return { kind: "range", range, text };
  const name = canonicalName(text);
  return name === null ? null : { kind: "name", text: name };
}

export interface ExplainDeps {
  policy: Policy;
  resolve(name: string): Promise<Address[]>;
}

/** The decision at one port. `part`: some addresses of the range are allowed. */
interface Judged {
  verdict: "allowed" | "refused" | "part";
  reason: Explanation["reason"];
  entry: string | null;
  /** Whether sent data must be for the name. */
  isBound: boolean;
}

export async function explain(
  place: Destination,
  port: number | null,
  { policy, resolve }: ExplainDeps,
): Promise<Explanation> {
  let found: Promise<Address[]> | undefined;
  // One lookup serves all ports of a name.
  const deps = { policy, resolve: (name: string) => (found ??= resolve(name)) };
  const judged = await judge(place, port ?? unlistedPort(policy), deps);
  if (judged.verdict === "allowed") return { ...about(place, port, judged), ...allowedText(place, port, judged) };
  const listed: [port: number, judged: Judged][] = [];
  for (const each of [...policy.ports].slice(0, MAX_PORTS).sort((one, other) => one - other)) {
    if (each !== port) listed.push([each, await judge(place, each, deps)]);
  }
  if (judged.verdict === "part") return { ...about(place, port, judged), ...partText(place, port) };
  const open = listed.filter(([, { verdict }]) => verdict === "allowed");
  const [first] = open;
  if (port === null && first) {
    const detail = `${place.text} is allowed at ${portsText(open)} only.`;
    return { ...about(place, port, first[1]), verdict: "conditional", detail, hint: null };
  }
  // An entry that matches with another port is more informative than the absence of an entry without a port.
  const near = port === null ? listed.find(([, { entry }]) => entry !== null && entry !== "*") : undefined;
  const [shownPort, shown] = near ?? [port, judged];
  const { detail, hint } = refusedText(place, shownPort, shown, policy);
  return { ...about(place, port, shown), detail, hint: first ? `It is allowed at ${portsText(open)}.` : hint };
}

const about = (place: Destination, port: number | null, { verdict, reason, entry }: Judged) => ({
  ...{ host: place.text, port, reason, entry },
  verdict: verdict === "part" ? ("conditional" as const) : verdict,
});

/** Explains that a sandbox without a network connects nowhere. */
export const withoutNetwork = ({ text }: Destination, port: number | null): Explanation => ({
  ...{ host: text, port, verdict: "refused", reason: "no_network", entry: null },
  detail: "The sandbox was created with enable_guest_net false, and has no network.",
  hint: "Create a sandbox without enable_guest_net false.",
});

async function judge(place: Destination, port: number, deps: ExplainDeps): Promise<Judged> {
  const { policy } = deps;
  if (place.kind === "range") return await judgeRange(place.range, port, policy);
  const entry =
    place.kind === "name" ? policy.entryOfName(place.text, port) : policy.entryOfAddress(place.address, port);
  const refused = (reason: Explanation["reason"]): Judged => ({ verdict: "refused", reason, entry, isBound: false });
  try {
    const decided = await decide(place.text, port, { policy: () => policy, resolve: deps.resolve });
    if (!("verdict" in decided)) return { verdict: "allowed", reason: null, entry, isBound: decided.bound !== null };
    return refused(decided.verdict === "blocked_address" && place.kind === "name" ? "no_address" : decided.verdict);
  } catch {
    return refused("no_address");
  }
}

async function judgeRange(range: Range, port: number, policy: Policy): Promise<Judged> {
  const verdicts = new Set<Verdict>();
  const entries = new Set<string | null>();
  // Up to 500 parts, each compared with up to 256 entries.
  const pieces = new Pieces(loopTime, loopTime.owner, "egress_explain");
  for (const address of partsOf(range, policy.ranges)) {
    const turn = pieces.next();
    if (turn) await turn;
    verdicts.add(policy.ofAddress(address, port));
    entries.add(policy.entryOfAddress(address, port));
  }
  const isAllowed = verdicts.has("allowed");
  const [entry = null] = entries.size === 1 ? entries : [];
  return {
    verdict: !isAllowed ? "refused" : verdicts.size === 1 ? "allowed" : "part",
    reason: isAllowed ? null : verdicts.has("not_listed") ? "not_listed" : "blocked_address",
    ...{ entry, isBound: false },
  };
}

/** A port that no entry has: a connection allowed there is allowed at every port. */
function unlistedPort({ ports }: Policy): number {
  let port = 1;
  while (ports.has(port)) port++;
  return port;
}

const partText = (place: Destination, port: number | null) => ({
  detail: `A part of ${to(place, port)} is allowed; its other addresses are not on the list, or cannot be reached.`,
  hint: "Pass one address, or a smaller range.",
});

function allowedText(place: Destination, port: number | null, { entry, isBound }: Judged) {
  const by = entry === null ? "the sandbox's egress list" : `the entry ${entry} of the sandbox's egress list`;
  const bound = isBound ? ` TLS and HTTP on the connection must be for ${place.text}.` : "";
  return { detail: `${to(place, port)} is allowed by ${by}.${bound}`, hint: null };
}

function refusedText(place: Destination, port: number | null, { reason, entry }: Judged, policy: Policy) {
  const target = to(place, port);
  if (reason === "no_address") {
    const detail = `${target} is allowed by the entry ${entry} of the sandbox's egress list, but leads to no address that the sandbox may reach: the name does not resolve, or to private addresses only.`;
    return { detail, hint: THREE_SETTINGS };
  }
  if (reason === "blocked_address") return blockedText(place, target, entry);
  const detail = policy.isEmpty
    ? `The sandbox's egress list is empty: it may connect to nothing.`
    : `${target} is not on the sandbox's egress list.`;
  return { detail, hint: `Add ${target} to the list.${place.kind === "name" ? ` ${THREE_SETTINGS}` : ""}` };
}

function blockedText(place: Destination, target: string, entry: string | null) {
  if (isNever(place)) {
    const detail = `${target} cannot be reached. ${NEVER_REACHABLE}`;
    return {
      detail,
      hint: isStandIn(place) ? "Addresses in 198.18.0.0/15 stand for names inside a guest: pass the name." : null,
    };
  }
  const isNamed = entry !== null && entry !== "*";
  const unnamed = place.kind === "range" ? "the list does not name all of it" : "the list does not name it";
  const named = isNamed ? `the list has ${entry}, egress.private_ranges of the service does not have it` : unnamed;
  const detail = `${target} is in a private network, or is an address of this host: ${named}.`;
  return { detail, hint: THREE_SETTINGS };
}

function isNever(place: Destination): boolean {
  if (place.kind === "range") return partsOf(place.range, []).every((address) => kindOf(address) === "never");
  return place.kind === "address" && kindOf(place.address) === "never";
}

const isStandIn = (place: Destination): boolean => place.kind === "address" && contains(STAND_INS, place.address);

function to({ text, kind }: Destination, port: number | null): string {
  if (port === null) return text;
  return kind !== "name" && text.includes(":") ? `[${text}]:${port}` : `${text}:${port}`;
}

function portsText(open: readonly (readonly [port: number, unknown])[]): string {
  const ports = open.map(([port]) => port);
  if (ports.length === 1) return `port ${ports[0]}`;
  return `ports ${ports.slice(0, -1).join(", ")} and ${ports.at(-1)}`;
}
