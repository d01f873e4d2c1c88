/**
 * Headers between two hosts. A request is forwarded as its caller has sent it; the entry host's additional knowledge of the caller is in
 * four headers of ours, which count only from a member's certificate, and which no client can send.
 */
import { isIP } from "node:net";
import { HOST_HEADER, REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { ServiceError } from "../../core/service-error.ts";
import { HOP_BY_HOP, isHeader } from "../../wire/http1/headers.ts";

/** The caller's address. */
const FORWARDED_FOR = "x-roomd-forwarded-for";
/** Marks a request that was forwarded once; a second forward is not allowed. */
const HOP = "x-roomd-hop";
/** The transport by which it arrived, if not HTTP. */
const SOURCE = "x-roomd-source";
/** Hash that identifies its call for an Idempotency-Key, if it is not that of the forwarded body. */
const SENT_SHA256 = "x-roomd-sent-sha256";
const REQUEST_ID = REQUEST_HEADERS.request_id.name.toLowerCase();

const OURS = [FORWARDED_FOR, HOP, SOURCE, SENT_SHA256, REQUEST_ID];
const NOT_ASKED_ON = new Set([...HOP_BY_HOP, ...OURS, "content-length", "expect"]);
const NOT_ANSWERED_ON = new Set([...HOP_BY_HOP, "content-length"]);

/** The entry host's knowledge of a request. */
export interface EntryFacts {
  ip: string | null;
  /** Null: the caller's own request ID is forwarded unchanged. */
  request_id: string | null;
  source?: "mcp";
  sent_sha256?: string;
}

/** The headers of a request for the owner; headers of its length and of a handshake are added elsewhere. Throws invalid_body. */
export function headersForOwner(headers: Iterable<[string, string]>, about: EntryFacts): [string, string][] {
  const all = [...headers].map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  const dropped = namedBy(all);
  const isOwnName = (name: string) => name === REQUEST_ID && about.request_id === null;
  const kept = all.filter(([name]) => (!NOT_ASKED_ON.has(name) || isOwnName(name)) && !dropped.has(name));
  kept.push([HOP, "1"]);
  if (about.request_id !== null) kept.push([REQUEST_ID, about.request_id]);
  if (about.ip !== null) kept.push([FORWARDED_FOR, about.ip]);
  if (about.sent_sha256 !== undefined) kept.push([SENT_SHA256, about.sent_sha256]);
  if (about.source !== undefined) kept.push([SOURCE, about.source]);
  requireHeaders(kept);
  return kept;
}

/** Bun's server accepts headers that serializeHead refuses. Throws invalid_body. */
export function requireHeaders(headers: Iterable<readonly [string, string]>): void {
  for (const [name, value] of headers) {
    if (isHeader(name, value)) continue;
    throw new ServiceError("invalid_body", { detail: `The header ${JSON.stringify(name)} has an invalid character.` });
  }
}

/** Whether another host forwards it for a client; else it is that host's own request. */
export const isCarried = (headers: Headers): boolean => headers.has(HOP);

/** The headers of a request without the additions of another host, for receivers that are not hosts. */
export function withoutEntry(headers: Headers): Headers {
  const kept = new Headers(headers);
  for (const name of [FORWARDED_FOR, HOP, SOURCE, SENT_SHA256]) kept.delete(name);
  return kept;
}

/** The headers of the owner's answer that the caller receives. */
export function headersForCaller(answered: readonly [string, string][]): Headers {
  const headers = new Headers();
  const dropped = namedBy(answered);
  for (const [name, value] of answered) {
    if (!NOT_ANSWERED_ON.has(name) && !dropped.has(name)) headers.append(name, value);
  }
  return headers;
}

interface SaidByEntry {
  address: string | null;
  source: "mcp" | undefined;
  sent_sha256: string | undefined;
}

/** The entry host's additions to a request that arrived at the listener for hosts. */
export function saidByEntry(headers: Headers): SaidByEntry {
  const address = headers.get(FORWARDED_FOR);
  const sent = headers.get(SENT_SHA256);
  return {
    sent_sha256: sent !== null && /^[0-9a-f]{64}$/.test(sent) ? sent : undefined,
    address: address !== null && isIP(address) !== 0 ? address : null,
    source: headers.get(SOURCE) === "mcp" ? "mcp" : undefined,
  };
}

/** The headers that `Connection` names as hop-by-hop, without the mandatory headers of a request or response. */
function namedBy(headers: readonly [string, string][]): ReadonlySet<string> {
  const names = headers
    .filter(([name]) => name === "connection")
    .flatMap(([, value]) => value.toLowerCase().split(","));
  const dropped = new Set(names.map((each) => each.trim()));
  for (const name of KEPT) dropped.delete(name);
  return dropped;
}

const KEPT = ["host", "authorization", "cookie", "content-type", "idempotency-key", HOST_HEADER.toLowerCase()];
