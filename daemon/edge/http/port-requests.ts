/**
 * HTTP access to servers in guests: by `/p/{label}/…`, or by the port's own host name. It needs no key and is no operation: the label and,
 * for a private port, its token grant access.
 *
 *     place → label → token (header, query once, cookie) → connection → exchange, or a WebSocket → the response as it arrives
 */

import { HOST_HEADER } from "../../../shared/api/headers.ts";
import { PORT_IDLE_SECONDS, PORT_TOKEN_HEADER } from "../../../shared/api/ports.ts";
import { newId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { OpenPort } from "../../domain/ports/connections.ts";
import type { Gate, PortRow } from "../../domain/ports/gate.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  exchange,
  headOf,
  Silence,
} from "../../domain/ports/http/exchange.ts";
import { headersForClient, headersForServer } from "../../domain/ports/http/headers.ts";
import { type PortAddress, placeOf } from "../../domain/ports/http/place.ts";
import { splitQuery, tokenCookieOf, tokenInCookies } from "../../domain/ports/http/secrets.ts";
import { Bridge } from "../../domain/ports/websocket/bridge.ts";
import { offer } from "../../domain/ports/websocket/handshake.ts";
import { BadMessage } from "../../wire/http1/bad-message.ts";
import type { HostClient } from "../hosts/client.ts";
import { forwardRequest, forwardUpgrade } from "../hosts/forward.ts";
import { requireHeaders, withoutEntry } from "../hosts/headers.ts";
import type { Locator } from "../hosts/locator.ts";
import { retryAfterOf, toProblem } from "../pipeline/problem.ts";
import { type HeaderFields, problemResponse, usualHeaders } from "./reply.ts";
import { isHandshake, UPGRADED, type Upgrade } from "./websocket.ts";

export interface PortRequest {
  request: Request;
  url: URL;
  place: PortAddress;
  ip: string | null;
  /** It came by another host. */
  hop: 1 | undefined;
  upgrade: Upgrade;
  /** Only the client is awaited from now on: it has a limited time to read the rest. */
  settled(): void;
}

export interface PortDoorDeps {
  gate: Gate;
  /** The name of this host. */
  host: string;
  /** Client for other hosts, and the locator of their ports; null: standalone. */
  others: HostClient | null;
  labels: Locator | null;
  log: Log;
}

/** The port address in a request, or null if the request is for the API. */
export function portPlaceOf(gate: Gate, request: Request, url: URL): PortAddress | null {
  return placeOf(request.headers.get("host"), url.pathname, gate.urls());
}

/** Never throws. */
export async function answerForPort(deps: PortDoorDeps, portRequest: PortRequest): Promise<Response> {
  const requestId = newId("req");
  try {
    return await answer(deps, portRequest, requestId);
  } catch (error) {
    const problem = toProblem(asServiceError(error), requestId, deps.log);
    const headers = usualHeaders(requestId, deps.host);
    return problemResponse(problem, headers, retryAfterOf(error, problem));
  }
}

/** The port is on this host, or on another that the locator finds. */
async function answer(deps: PortDoorDeps, portRequest: PortRequest, requestId: string): Promise<Response> {
  const { label } = portRequest.place;
  let row: PortRow;
  try {
    row = deps.gate.find(label);
  } catch (error) {
    const host = portRequest.hop === undefined && deps.labels ? await deps.labels.hostOf(label) : null;
    if (!host || !deps.others) throw error;
    return await answerElsewhere(deps.others, host, deps.host, portRequest);
  }
  return await answerHere(deps, row, portRequest, requestId);
}

/** Forwards to the port's host, which checks the token and everything else. */
async function answerElsewhere(
  others: HostClient,
  host: Host,
  own: string,
  portRequest: PortRequest,
): Promise<Response> {
  const { request, ip, settled } = portRequest;
  const { method, headers, signal } = request;
  requirePassable(method, headers);
  const about = { ip, request_id: null, own };
  if (!isSocket(method, headers)) return await forwardRequest(others, host, request, about, signal, settled);
  const upgraded = await forwardUpgrade(others, host, request, about, signal);
  if (upgraded.kind === "answers") return upgraded.response;
  if (portRequest.upgrade(upgraded.conversation, upgraded.headers)) return UPGRADED;
  upgraded.conversation.left();
  throw notHandshake();
}

const isSocket = (method: string, headers: Headers) => method === "GET" && isHandshake(headers);
const isReading = (method: string, headers: Headers) =>
  (method === "GET" || method === "HEAD") && !isSocket(method, headers);

/** Whether a browser loads a page, and will request its subresources without the query. Over plain HTTP browsers send no Sec-Fetch-Mode. */
const isNavigation = (headers: Headers) =>
  (headers.get("sec-fetch-mode") ?? (headers.has("upgrade-insecure-requests") ? "navigate" : null)) === "navigate";

const notHandshake = () =>
  new ServiceError("invalid_body", { detail: "The request is not a valid WebSocket handshake." });

/** Throws method_not_allowed, invalid_body. */
function requirePassable(method: string, headers: Headers): void {
  if (method === "CONNECT" || method === "TRACE") throw new ServiceError("method_not_allowed");
  // Bun's server does not expose the body of such requests; without its body the forwarded request would differ.
  if (isReading(method, headers) && hasBody(headers)) {
    throw new ServiceError("invalid_body", { detail: `A ${method} request to a port cannot have a body.` });
  }
}

async function answerHere(
  { gate, host }: PortDoorDeps,
  row: PortRow,
  portRequest: PortRequest,
  requestId: string,
): Promise<Response> {
  const { request, url, place } = portRequest;
  const { method } = request;
  const headers = portRequest.hop === undefined ? request.headers : withoutEntry(request.headers);
  const { search, token: inQuery } = splitQuery(url.search);
  const inHeader = headers.get(PORT_TOKEN_HEADER);
  const given = inHeader ?? inQuery;
  gate.admit(row, given ?? tokenInCookies(headers.get("cookie"), place), portRequest.ip);
  if (method === "CONNECT" || method === "TRACE") throw new ServiceError("method_not_allowed");
  const wantsSocket = isSocket(method, headers);
  const isPrivate = row.visibility === "private";
  const isRead = isReading(method, headers);
  if (isPrivate && given === null) requireOwnPage(headers, place, isRead);
  const isTokenOfPage = inQuery !== null && isNavigation(headers);
  // Clients without a cookie jar send the token with each request, and are not redirected.
  if (isRead && (isTokenOfPage || (inQuery === null && place.path === ""))) {
    return redirected(place, search, isPrivate && inHeader === null ? inQuery : null, usualHeaders(requestId, host));
  }
  if (place.mode === "path" && headers.has("service-worker")) {
    throw new ServiceError("source_mismatch", { detail: "A service worker needs the port's own host." });
  }
  requirePassable(method, headers);
  const handshake = wantsSocket ? offer(headers.get("sec-websocket-protocol")) : null;
  const length = headers.get("content-length");
  const inner: ExchangeRequest = {
    method,
    target: (place.path === "" ? "/" : place.path) + search,
    headers: headersForServer(headers, place, row.port, { ip: portRequest.ip }, handshake?.headers),
    body: request.body,
    length: length === null ? null : lengthOf(length),
  };
  requireHeaders(inner.headers);
  const connection = await gate.open(row, headOf(inner));
  let answered: ExchangeResponse;
  try {
    answered = await exchange(connection, inner, request.signal);
  } catch (error) {
    connection.close();
    throw connection.cutBecause === null
      ? error
      : new ServiceError("guest_unreachable", { detail: cutDetail(connection) });
  }
  const { head, body, reader } = answered;
  if (head.status !== 101) connection.ended.then(portRequest.settled, portRequest.settled);
  const shown = headersForClient(head.headers, place, row.port);
  if (!shown.has("x-request-id")) shown.set("x-request-id", requestId);
  shown.set(HOST_HEADER, host);
  if (head.status === 101) {
    if (!handshake) throw closed(connection, new BadMessage("it switched to a protocol that was not requested"));
    const protocol = accepted(connection, () => handshake.accepted(head));
    for (const name of [...shown.keys()]) if (name.startsWith("sec-websocket-")) shown.delete(name);
    if (protocol !== null) shown.set("sec-websocket-protocol", protocol);
    const bridge = new Bridge(connection, reader);
    if (portRequest.upgrade(bridge, shown)) return UPGRADED;
    connection.close();
    throw notHandshake();
  }
  const announced = head.headers.find(([name]) => name === "content-length")?.[1];
  if (method === "HEAD" && announced !== undefined) shown.set("content-length", announced);
  return new Response(body, { status: head.status, headers: shown });
}

/**
 * A browser adds the cookie whichever page sends the request, including pages of other ports below the same domain. By a WebSocket a
 * foreign page could read the response, since WebSockets have no other protection than this; by methods other than reading, it could change
 * data.
 */
function requireOwnPage(headers: Headers, { scheme, host }: PortAddress, isRead: boolean): void {
  const origin = headers.get("origin");
  // A page cannot set this header itself. It is also present if the page suppresses its referrer and its origin is null.
  const isSame = ["same-origin", "none"].includes(headers.get("sec-fetch-site") ?? "");
  if (isRead || isSame || origin === null || origin === `${scheme}://${host}`) return;
  throw new ServiceError("source_mismatch", {
    detail:
      "With a private port's cookie, WebSockets and requests that change something are accepted only from pages of the port's own host.",
    hint: "Use the port's url with a wildcard domain, or send the token as ?port_token= or X-Port-Token.",
  });
}

/** Redirects to a URL without the token: from then on it is in a cookie that scripts cannot read. */
function redirected(place: PortAddress, search: string, token: string | null, usual: HeaderFields): Response {
  const path = place.path === "" ? "/" : place.path;
  const at = `${place.scheme}://${place.host}${place.prefix}${path}${search}`;
  const headers = new Headers({
    ...usual,
    Location: place.mode === "path" ? `${place.prefix}${path}${search}` : at,
    "Referrer-Policy": "no-referrer",
  });
  if (token !== null) {
    const secure = place.scheme === "https" ? "; Secure" : "";
    headers.set(
      "Set-Cookie",
      `${tokenCookieOf(place)}=${token}; Path=${place.prefix}/; HttpOnly; SameSite=Lax${secure}`,
    );
  }
  return new Response(null, { status: token === null && search === "" ? 308 : 303, headers });
}

function hasBody(headers: Headers): boolean {
  return headers.has("transfer-encoding") || (headers.get("content-length") ?? "0") !== "0";
}

function lengthOf(text: string): number {
  const [first = "", ...rest] = text.split(/\s*,\s*/);
  if (/^\d{1,15}$/.test(first) && rest.every((each) => each === first)) return Number(first);
  throw new ServiceError("invalid_body", { detail: "Content-Length is not a number." });
}

function accepted<T>(connection: OpenPort, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw closed(connection, error);
  }
}

function closed(connection: OpenPort, error: unknown): unknown {
  connection.close();
  return error;
}

function cutDetail({ cutBecause }: OpenPort): string {
  return `The connection was closed: ${cutBecause}.`;
}

function asServiceError(error: unknown): unknown {
  if (error instanceof Silence) {
    return new ServiceError("guest_unreachable", {
      detail: `The server on this port sent nothing for ${PORT_IDLE_SECONDS} seconds, and its response was not complete.`,
    });
  }
  if (!(error instanceof BadMessage)) return error;
  return new ServiceError("guest_unreachable", {
    detail: `The server on this port sent an invalid HTTP response: ${error.message}.`,
    hint: "The sandbox answers; its server does not speak HTTP/1.1 correctly, or speaks another protocol.",
  });
}
