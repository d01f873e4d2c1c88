/**
 * Owns a request of HTTP on its way to the road: where it came in, and how the road reads it. What few calls ask for is made when they
 * ask: objects of these classes cost each request much less than closures of its own.
 */
import type { Server } from "bun";
import type { Source } from "../../../shared/api/audit.ts";
import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { readTraceparent, type TraceContext } from "../../../shared/traceparent.ts";
import type { Conversation } from "../../core/conversation.ts";
import type { Caller, Transfer } from "../../core/operation.ts";
import type { RoadRequest } from "../run.ts";
import { readJsonBody } from "./body.ts";
import { takesLines } from "./events.ts";
import type { IsFromHost } from "./from-host.ts";
import { readQuery } from "./query.ts";
import { type SocketData, upgrade } from "./websocket.ts";

/** A request as it came in, and the server that it came to. */
export class Arrival {
  readonly request: Request;
  readonly url: URL;
  /** Whose request it is; null where that is not known. */
  readonly ip: string | null;
  readonly request_id: string;
  readonly #server: Server<SocketData>;

  constructor(server: Server<SocketData>, request: Request, url: URL, ip: string | null, requestId: string) {
    this.#server = server;
    this.request = request;
    this.url = url;
    this.ip = ip;
    this.request_id = requestId;
  }

  /** Makes the connection a conversation's, with these headers in the answer; false when its handshake is none. */
  upgrade(conversation: Conversation, headers: Headers): boolean {
    return upgrade(this.#server, this.request, conversation, headers);
  }
}

/** What of a request the door has read before the road. */
interface Read {
  params: Record<string, string>;
  authorization: string | null;
  token: string | null;
  /** Who calls, by a session's cookie. */
  session: (() => Caller) | null;
  websocket: boolean;
}

export class HttpRequest implements RoadRequest {
  readonly source: Source;
  readonly recognise: (() => Caller) | undefined;
  readonly request_id: string;
  readonly ip: string | null;
  readonly authorization: string | null;
  readonly token: string | null;
  readonly path: string;
  readonly params: Record<string, string>;
  readonly idempotency_key: string | null;
  readonly trace: TraceContext | null;
  readonly transfer: Transfer;
  readonly #arrival: Arrival;
  readonly #isFromHost: IsFromHost;

  constructor(arrival: Arrival, isFromHost: IsFromHost, read: Read) {
    const { headers } = arrival.request;
    this.source = read.session ? "web" : "rest";
    this.recognise = read.session ?? undefined;
    this.request_id = arrival.request_id;
    this.ip = arrival.ip;
    this.authorization = read.authorization;
    this.token = read.token;
    this.path = arrival.url.pathname;
    this.params = read.params;
    this.idempotency_key = headers.get(REQUEST_HEADERS.idempotency_key.name);
    this.trace = readTraceparent(headers.get(REQUEST_HEADERS.traceparent.name));
    this.transfer = new HttpTransfer(arrival.request, read.websocket);
    this.#arrival = arrival;
    this.#isFromHost = isFromHost;
  }

  get isFromHost(): boolean {
    const { ip, url, request } = this.#arrival;
    return this.#isFromHost({ address: ip, hostname: url.hostname, headers: request.headers });
  }

  query(): Record<string, string> {
    return readQuery(this.#arrival.url.search);
  }

  body(maxBytes: number) {
    return readJsonBody(this.#arrival.request, maxBytes, { measured: true });
  }

  get signal(): AbortSignal {
    return this.#arrival.request.signal;
  }
}

class HttpTransfer implements Transfer {
  readonly websocket: boolean;
  readonly #request: Request;

  constructor(request: Request, websocket: boolean) {
    this.#request = request;
    this.websocket = websocket;
  }

  get body() {
    return this.#request.body;
  }

  get range() {
    return this.#header("range");
  }

  get if_match() {
    return this.#header("if_match");
  }

  get if_none_match() {
    return this.#header("if_none_match");
  }

  get last_event_id() {
    return this.#header("last_event_id");
  }

  get ndjson() {
    return takesLines(this.#request.headers);
  }

  #header(name: keyof typeof REQUEST_HEADERS): string | null {
    return this.#request.headers.get(REQUEST_HEADERS[name].name);
  }
}
