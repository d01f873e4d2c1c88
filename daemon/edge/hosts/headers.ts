/**
 * Owns what becomes of headers between two hosts. A request goes on as its caller has sent it; what the entry knows of the caller
 * besides stands in four headers of ours, which count only where they come from a member's certificate, and which nobody else can send.
 */
import { isIP } from "node:net";
import { HOST_HEADER, REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { ServiceError } from "../../core/service-error.ts";
import { HOP_BY_HOP } from "../../domain/ports/http/headers.ts";

/** The caller's address. */
const FORWARDED_FOR = "x-roomd-forwarded-for";
/** The request has been forwarded once, which is as often as it may be. */
const HOP = "x-roomd-hop";
/** By which door it came in, where that is another than HTTP's own. */
const SOURCE = "x-roomd-source";
/** What tells its call from another with the same Idempotency-Key, where that is not the body as it is sent on. */
const SENT_SHA256 = "x-roomd-sent-sha256";
const REQUEST_ID = REQUEST_HEADERS.request_id.name.toLowerCase();

const OURS = [FORWARDED_FOR, HOP, SOURCE, SENT_SHA256, REQUEST_ID];
const NOT_ASKED_ON = new Set([...HOP_BY_HOP, ...OURS, "content-length", "expect"]);
const NOT_ANSWERED_ON = new Set([...HOP_BY_HOP, "content-length"]);
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Of what is written as one byte each. Anything else might become the end of a line. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What the entry knows of a request. */
export interface About {
  ip: string | null;
  /** Null: what the caller calls it goes on as it is. */
  request_id: string | null;
  source?: "mcp";
  sent_sha256?: string;
}

/** The headers of a request, as the owner gets them; those of its length and of a handshake are left to others. Throws invalid_body. */
export function headersForOwner(headers: Iterable<[string, string]>, about: About): [string, string][] {
  const all = [...headers].map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  const dropped = namedBy(all);
  const isOwnName = (name: string) => name === REQUEST_ID && about.request_id === null;
  const kept = all.filter(([name]) => (!NOT_ASKED_ON.has(name) || isOwnName(name)) && !dropped.has(name));
  kept.push([HOP, "1"]);
  if (about.request_id !== null) kept.push([REQUEST_ID, about.request_id]);
  if (about.ip !== null) kept.push([FORWARDED_FOR, about.ip]);
  if (about.sent_sha256 !== undefined) kept.push([SENT_SHA256, about.sent_sha256]);
  if (about.source !== undefined) kept.push([SOURCE, about.source]);
  for (const [name, value] of kept) {
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new ServiceError("invalid_body", {
        detail: `The header ${JSON.stringify(name)} has a character that no header has.`,
      });
    }
  }
  return kept;
}

/** Whether another host carries it for a client of its own, or else asks for itself. */
export const isCarried = (headers: Headers): boolean => headers.has(HOP);

/** The headers of a request without what another host has added, for who is no host. */
export function withoutEntry(headers: Headers): Headers {
  const kept = new Headers(headers);
  for (const name of [FORWARDED_FOR, HOP, SOURCE, SENT_SHA256]) kept.delete(name);
  return kept;
}

/** The headers of the owner's answer, as the caller gets them. */
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

/** What the entry has said of a request that came by the listener for hosts. */
export function saidByEntry(headers: Headers): SaidByEntry {
  const address = headers.get(FORWARDED_FOR);
  const sent = headers.get(SENT_SHA256);
  return {
    sent_sha256: sent !== null && /^[0-9a-f]{64}$/.test(sent) ? sent : undefined,
    address: address !== null && isIP(address) !== 0 ? address : null,
    source: headers.get(SOURCE) === "mcp" ? "mcp" : undefined,
  };
}

/** Those that are of the connection because it says so; never what a request or an answer cannot be without. */
function namedBy(headers: readonly [string, string][]): ReadonlySet<string> {
  const names = headers
    .filter(([name]) => name === "connection")
    .flatMap(([, value]) => value.toLowerCase().split(","));
  const dropped = new Set(names.map((each) => each.trim()));
  for (const name of KEPT) dropped.delete(name);
  return dropped;
}

const KEPT = ["host", "authorization", "cookie", "content-type", "idempotency-key", HOST_HEADER.toLowerCase()];
