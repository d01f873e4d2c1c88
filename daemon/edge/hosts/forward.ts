/**
 * Forwards a request to the host that owns its room, and the response back, both unchanged: the owner runs the whole pipeline with the
 * caller's credentials.
 *
 *     request → our headers for the owner's → connection → exchange, or a WebSocket → the response as it arrives
 */

import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import type { EventsReply, JsonBody } from "../../core/call/operation.ts";
import type { DuplexSession } from "../../core/concurrency/duplex-session.ts";
import { within } from "../../core/concurrency/published.ts";
import { parseJson } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { ExchangeResponse } from "../../domain/ports/http/exchange.ts";
import { Bridge } from "../../domain/ports/websocket/bridge.ts";
import { offer } from "../../domain/ports/websocket/handshake.ts";
import { type HostClient, type Outgoing, parsed, type Reached, unanswered, unreachable } from "./client.ts";
import { eventsOf } from "./events.ts";
import { type EntryFacts, headersForCaller, headersForOwner } from "./headers.ts";

/** Properties of a request that the entry host has determined. */
export interface Forwarded extends EntryFacts {
  /** This host's ID: requests are never forwarded to it. */
  own: string;
}

/** Largest body of known length that is sent together with the request head. */
const SMALL_BYTES = 16 * 1024;
/** Timeout for receiving such a small body. */
const SMALL_MS = 30_000;
/** Limit of an answer that is read as a whole. */
const MAX_WHOLE_BYTES = 32 * 1024 * 1024;
const PATH = /^\/[\x21-\x22\x24-\x3e\x40-\x7e]*$/;
const LINES_TYPE = /^application\/x-ndjson(?:\s*;|$)/i;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json(?:\s*;|$)/i;

/**
 * Forwards the request and returns the owner's response. `gone` aborts when the caller disconnects; `ended` is called when the owner has
 * sent everything. Rejects with host_unreachable, invalid_body, or the reason of `gone`.
 */
export async function forwardRequest(
  client: HostClient,
  host: Reached,
  request: Request,
  about: Forwarded,
  signal: AbortSignal,
  ended?: () => void,
): Promise<Response> {
  const { method } = request;
  const answered = await client.ask(requireOther(host, about), await outgoingOf(request, about), signal);
  if (ended) answered.line.ended.then(ended, ended);
  return responseOf(method, answered);
}

export interface JsonRequest {
  method: string;
  /** In URL encoding. */
  path: string;
  query?: Record<string, string>;
  /** Absent: there is no body. */
  fields?: Record<string, unknown>;
  /** The caller's headers: Authorization, Idempotency-Key, traceparent, Accept. */
  headers?: Record<string, string>;
  /** Length from which on the JSON of a successful response stays unparsed; absent: none does. */
  unparsedFrom?: number;
}

export interface JsonAnswer {
  status: number;
  headers: Headers;
  /** The parsed JSON, or the bytes if it is not JSON. */
  body: unknown;
  /** The JSON, if it is unparsed. */
  json?: JsonBody<never>;
  /** Of a streamed response, instead. */
  events?: EventsReply;
}

/** The same for a transport that has fields as input, and needs the whole response, or its events. */
export async function forwardJson(
  client: HostClient,
  host: Reached,
  request: JsonRequest,
  about: Forwarded,
  signal: AbortSignal,
): Promise<JsonAnswer> {
  const { method, path, query = {}, fields, headers = {}, unparsedFrom = Number.POSITIVE_INFINITY } = request;
  if (!PATH.test(path)) throw new Error(`${JSON.stringify(path)} is not a URL path`);
  const search = new URLSearchParams(query).toString();
  const whole = fields && Buffer.from(JSON.stringify(fields));
  const headerList: [string, string][] = [["host", host.address], ...Object.entries(headers)];
  if (whole) headerList.push(["content-type", "application/json"]);
  const outgoing: Outgoing = {
    method,
    target: search === "" ? path : `${path}?${search}`,
    headers: [...headersForOwner(headerList, about), ...lengthOf(whole)],
    body: null,
    length: null,
    ...(whole && { whole }),
    mayRepeat: () => isRepeatable(method, headerList, fields),
  };
  const answered = await client.ask(requireOther(host, about), outgoing, signal);
  const shown = headersForCaller(answered.head.headers);
  const { status } = answered.head;
  const type = shown.get("content-type") ?? "";
  if (LINES_TYPE.test(type)) {
    return { status, headers: shown, body: null, events: eventsOf(answered.body, () => answered.line.close()) };
  }
  const bytes = await wholeOf(host, answered, outgoing, signal);
  if (!JSON_TYPE.test(type)) return { status, headers: shown, body: bytes };
  if (status < 400 && bytes.byteLength >= unparsedFrom) return { status, headers: shown, body: null, json: { bytes } };
  return { status, headers: shown, body: parsed(host, bytes, MAX_PART_VALUES) };
}

export type Upgraded =
  /** The owner accepts the WebSocket: the transport upgrades the caller's connection, with these headers in the response. */
  { kind: "talks"; conversation: DuplexSession; headers: Headers } | { kind: "answers"; response: Response };

/** Forwards a WebSocket handshake, which the owner accepts or answers with a response. */
export async function forwardUpgrade(
  client: HostClient,
  host: Reached,
  request: Request,
  about: Forwarded,
  signal: AbortSignal,
): Promise<Upgraded> {
  const { method, headers } = request;
  const handshake = offer(headers.get("sec-websocket-protocol"), "host");
  const kept = saidIn(request).filter(([name]) => !name.startsWith("sec-websocket-"));
  const outgoing: Outgoing = {
    method,
    target: targetOf(request),
    headers: [...headersForOwner(kept, about), ...handshake.headers],
    body: null,
    length: null,
  };
  const answered = await client.ask(requireOther(host, about), outgoing, signal);
  const { head, line, reader } = answered;
  if (head.status !== 101) return { kind: "answers", response: responseOf(method, answered) };
  let protocol: string | null;
  try {
    protocol = handshake.accepted(head);
  } catch (error) {
    line.close();
    throw unreachable(host, error);
  }
  const shown = headersForCaller(head.headers.filter(([name]) => !name.startsWith("sec-websocket-")));
  if (protocol !== null) shown.set("sec-websocket-protocol", protocol);
  return { kind: "talks", conversation: new Bridge(line, reader), headers: shown };
}

async function outgoingOf(request: Request, about: EntryFacts): Promise<Outgoing> {
  const { method, headers, body } = request;
  const own = headersForOwner(saidIn(request), about);
  const target = targetOf(request);
  const length = body === null ? null : lengthSaid(headers);
  if (body === null || length === null || length > SMALL_BYTES) {
    const bare = { method, target, headers: own, body, length: body === null && mayHaveBody(method) ? 0 : length };
    return { ...bare, mayRepeat: () => isRepeatable(method, own, null) };
  }
  const whole = await smallBody(request);
  const mayRepeat = () => isRepeatable(method, own, fieldsOf(whole));
  return { method, target, headers: [...own, ...lengthOf(whole)], body: null, length: null, whole, mayRepeat };
}

function responseOf(method: string, { head, body, line }: Awaited<ReturnType<HostClient["ask"]>>): Response {
  // No protocol change was requested, and Bun could not send this status.
  if (head.status === 101) {
    line.close();
    throw new ServiceError("host_unreachable", {
      detail: "The room's host changed to a protocol that was not requested.",
    });
  }
  const headers = headersForCaller(head.headers);
  const length = head.headers.find(([name]) => name === "content-length")?.[1];
  if (method === "HEAD" && length !== undefined) headers.set("content-length", length);
  return new Response(body, { status: head.status, headers });
}

/** The request's headers, always with a Host: a request that was made in this process may have none. */
function saidIn({ headers, url }: Request): [string, string][] {
  return headers.has("host") ? [...headers] : [["host", new URL(url).host], ...headers];
}

/** The request's path and query, as both hosts parse them. */
function targetOf(request: Request): string {
  const { pathname, search } = new URL(request.url);
  return pathname + search;
}

const mayHaveBody = (method: string) => !["GET", "HEAD", "DELETE", "OPTIONS"].includes(method);

function lengthOf(whole: Uint8Array | undefined): [string, string][] {
  return whole === undefined ? [] : [["content-length", String(whole.byteLength)]];
}

/** The Content-Length; null if absent or overridden by Transfer-Encoding. Throws invalid_body unless it is one number. */
function lengthSaid(headers: Headers): number | null {
  const value = headers.get("content-length");
  if (value === null || headers.has("transfer-encoding")) return null;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw new ServiceError("invalid_body", { detail: "Content-Length is not a number." });
}

/** Throws invalid_body. */
async function smallBody(request: Request): Promise<Uint8Array> {
  try {
    return await within(request.bytes(), SMALL_MS, "the body");
  } catch (error) {
    throw new ServiceError("invalid_body", { detail: "The body ended early.", cause: error });
  }
}

/** Reads an answer as a whole. Rejects with host_unreachable if it breaks off or exceeds the limit. */
async function wholeOf(
  host: Reached,
  { body, line }: ExchangeResponse & { line: { close(): void } },
  outgoing: Outgoing,
  signal: AbortSignal,
) {
  if (!(body instanceof ReadableStream)) return body ?? new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
      parts.push(bytes);
      size += bytes.byteLength;
      if (size > MAX_WHOLE_BYTES) throw new Error(`an answer of over ${MAX_WHOLE_BYTES} bytes`);
    }
    return Buffer.concat(parts);
  } catch (error) {
    line.close();
    signal.throwIfAborted();
    throw unanswered(host, outgoing, error);
  }
}

const IDEMPOTENCY_KEY = REQUEST_HEADERS.idempotency_key.name.toLowerCase();
/** Fields with the ID of the command or message that a call creates: a repeated ID is the same work. */
const NAMES_WORK = ["exec_id", "message_id"];

/** Whether a repetition of the call is harmless: it changes nothing, or is recognized as a retry. */
function isRepeatable(method: string, headers: readonly [string, string][], fields: unknown): boolean {
  if (method === "GET" || method === "HEAD") return true;
  if (headers.some(([name]) => name.toLowerCase() === IDEMPOTENCY_KEY)) return true;
  return NAMES_WORK.some((name) => typeof (fields as Record<string, unknown> | null | undefined)?.[name] === "string");
}

/** The fields of a small body; null if it is not JSON. */
function fieldsOf(whole: Uint8Array): unknown {
  try {
    return parseJson(whole);
  } catch {
    return null;
  }
}

/** Limit of JSON values: a page of 1,000 items, parsed in 4 ms. */
const MAX_PART_VALUES = 200_000;

function requireOther(host: Reached, { own }: Forwarded): Reached {
  if (host.host_id === own) throw new Error("a request cannot be forwarded to the host that it is on");
  return host;
}
