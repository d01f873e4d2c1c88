/**
 * An HTTP request for the pipeline: its arrival, and access to its parts. Parts that few calls need are created lazily: objects of these
 * classes cost each request much less than its own closures.
 */
import type { Server } from "bun";
import type { Source } from "../../../shared/api/audit.ts";
import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { readTraceparent, type TraceContext } from "../../../shared/traceparent.ts";
import type { Host } from "../../cluster/directory.ts";
import type { Caller, Transfer } from "../../core/call/operation.ts";
import type { DuplexSession } from "../../core/concurrency/duplex-session.ts";
import type { Aside } from "../../host/aside/pool.ts";
import type { HostClient } from "../hosts/client.ts";
import { forwardJson, forwardRequest, forwardUpgrade, type Upgraded } from "../hosts/forward.ts";
import type { PipelineRequest } from "../pipeline/pipeline.ts";
import type { Outcome } from "../pipeline/request-context.ts";
import { readJsonBody } from "./body.ts";
import { takesLines } from "./events.ts";
import type { IsFromHost } from "./from-host.ts";
import { readQuery } from "./query.ts";
import { type SocketData, upgrade } from "./websocket.ts";

/** Sender of a request: a client, or another host for one. */
export interface Sender {
  /** Its connection; absent or null: another host's, or a closed one. */
  connection?: string | null;
  /** The client's; null if unknown. */
  address: string | null;
  hop?: 1;
  source?: "mcp" | undefined;
  /** Hash that identifies its call among those with the same Idempotency-Key. */
  sent_sha256?: string | undefined;
}

/** A request as it arrived, and its server. */
export class Arrival {
  readonly request: Request;
  readonly url: URL;
  /** The client's address; null if unknown. */
  readonly ip: string | null;
  readonly connection: string | null;
  readonly hop: 1 | undefined;
  readonly source: Source;
  readonly sent_sha256: string | undefined;
  readonly request_id: string;
  readonly #server: Server<SocketData>;

  constructor(server: Server<SocketData>, request: Request, url: URL, sender: Sender, requestId: string) {
    this.#server = server;
    this.request = request;
    this.url = url;
    this.ip = sender.address;
    this.connection = sender.connection ?? null;
    this.hop = sender.hop;
    this.source = sender.source ?? "rest";
    this.sent_sha256 = sender.sent_sha256;
    this.request_id = requestId;
  }

  /** Another request of the same client to the same server. */
  another(request: Request, requestId: string): Arrival {
    const sender = { address: this.ip, hop: this.hop } as Sender;
    return new Arrival(this.#server, request, new URL(request.url), sender, requestId);
  }

  /** Upgrades the connection for a conversation, with these headers in the response; false if its handshake is invalid. */
  upgrade(conversation: DuplexSession, headers: Headers): boolean {
    return upgrade(this.#server, this.request, conversation, headers);
  }
}

/** Parts of a request that the transport reads before the pipeline. */
interface Read {
  params: Record<string, string>;
  /** The request's path; if the client used an alias, the operation's path. */
  path: string;
  authorization: string | null;
  token: string | null;
  /** The caller, by a session's cookie. */
  session: (() => Caller) | null;
  websocket: boolean;
}

/** The transport's context of a request. */
interface Door {
  isFromHost: IsFromHost;
  aside: Aside;
  /** Client for other hosts; null: standalone. */
  others: HostClient | null;
  /** The name of this host. */
  host: string;
}

export class HttpRequest implements PipelineRequest {
  readonly source: Source;
  readonly recognise: (() => Caller) | undefined;
  readonly request_id: string;
  readonly ip: string | null;
  readonly connection: string | null;
  readonly authorization: string | null;
  readonly token: string | null;
  readonly path: string;
  readonly params: Record<string, string>;
  readonly idempotency_key: string | null;
  readonly trace: TraceContext | null;
  readonly transfer: Transfer;
  readonly hop: 1 | undefined;
  readonly forward: ((host: Host) => Promise<Outcome>) | undefined;
  readonly ask: PipelineRequest["ask"];
  readonly #arrival: Arrival;
  readonly #door: Door;
  /** Bytes of the body once it was read. */
  #taken: Uint8Array | null = null;

  constructor(arrival: Arrival, door: Door, read: Read) {
    const { headers } = arrival.request;
    this.source = read.session ? "web" : arrival.source;
    this.recognise = read.session ?? undefined;
    this.request_id = arrival.request_id;
    this.ip = arrival.ip;
    this.connection = arrival.connection;
    this.authorization = read.authorization;
    this.token = read.token;
    this.path = read.path;
    this.params = read.params;
    this.idempotency_key = headers.get(REQUEST_HEADERS.idempotency_key.name);
    this.trace = readTraceparent(headers.get(REQUEST_HEADERS.traceparent.name));
    this.transfer = new HttpTransfer(arrival.request, read.websocket);
    this.hop = arrival.hop;
    const { others } = door;
    this.forward = others && arrival.hop === undefined ? (host) => this.#askElsewhere(others, host) : undefined;
    this.ask =
      others && arrival.hop === undefined
        ? (host, query, until, as) => this.#askPart(others, host, query, until, as)
        : undefined;
    this.#arrival = arrival;
    this.#door = door;
  }

  get isFromHost(): boolean {
    const { ip, url, request, hop } = this.#arrival;
    // A client address reported by another host is not an address of this host.
    if (hop !== undefined) return false;
    return this.#door.isFromHost({ address: ip, hostname: url.hostname, headers: request.headers });
  }

  query(): Record<string, string> {
    return readQuery(this.#arrival.url.search);
  }

  async body(maxBytes: number, over?: AbortSignal) {
    const read = await readJsonBody(this.#arrival.request, maxBytes, { measured: true, over, aside: this.#door.aside });
    this.#taken = read.bytes;
    const { sent_sha256 } = this.#arrival;
    return sent_sha256 === undefined ? read : { ...read, sha256: sent_sha256 };
  }

  get signal(): AbortSignal {
    return this.#arrival.request.signal;
  }

  async #askPart(others: HostClient, host: Host, query: Record<string, string>, until: AbortSignal, as?: "lines") {
    const { request, url, ip, request_id } = this.#arrival;
    const accept = as === "lines" ? "application/x-ndjson" : "application/json";
    const headers = { accept, ...credentialsOf(request.headers) };
    const about = { ip, request_id, own: this.#door.host };
    const signal = AbortSignal.any([request.signal, until]);
    const forwarded = { method: request.method, path: url.pathname, query, headers };
    return await forwardJson(others, host, forwarded, about, signal);
  }

  async #askElsewhere(others: HostClient, host: Host): Promise<Outcome> {
    const { request, ip, request_id } = this.#arrival;
    const { method, headers, signal } = request;
    const forwarded = this.#taken ? new Request(request.url, { method, headers, body: this.#taken }) : request;
    const about = { ip, request_id, own: this.#door.host };
    return this.transfer.websocket
      ? talking(await forwardUpgrade(others, host, forwarded, about, signal))
      : answered(await forwardRequest(others, host, forwarded, about, signal));
  }
}

/** Headers that authenticate its caller: a session's cookie counts if one of our pages has sent the request. */
const CREDENTIALS = ["authorization", "cookie", "origin", "referer", "sec-fetch-site", "sec-fetch-mode"];

function credentialsOf(headers: Headers): Record<string, string> {
  const entries = CREDENTIALS.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

/** Another host's response, as an outcome of the pipeline. */
function answered(answer: Response): Outcome {
  return {
    kind: "done",
    status: answer.status,
    done: { outcome: "forwarded", answer },
    location: null,
    replayed: false,
  };
}

function talking(upgraded: Upgraded): Outcome {
  if (upgraded.kind === "answers") return answered(upgraded.response);
  const { conversation, headers } = upgraded;
  const answer = new Response(null, { headers });
  return {
    kind: "done",
    status: 101,
    done: { outcome: "forwarded", conversation, answer },
    location: null,
    replayed: false,
  };
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
