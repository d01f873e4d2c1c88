/**
 * The HTTP transport: a route for every operation of the list, and a problem response for any other path. It handles HTTP only; everything
 * else is in the pipeline.
 */
import { isIPv4 } from "node:net";
import { Elysia } from "elysia";
import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { termsOf } from "../../../shared/api/spelling.ts";
import { newId, REQUEST_ID_PATTERN } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import type { Certificate } from "../../core/config/certificate.ts";
import { peopleUrl } from "../../core/config/people-url.ts";
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Gate } from "../../domain/ports/gate.ts";
import type { Aside } from "../../host/aside/pool.ts";
import type { HostClient } from "../hosts/client.ts";
import { isCarried, saidByEntry } from "../hosts/headers.ts";
import { type MembersListener, openMembersListener } from "../hosts/listener.ts";
import { answerLocator, type Locator } from "../hosts/locator.ts";
import { answerPeer, type HostCalls } from "../hosts/room-transfer.ts";
import { isSshPath, type TakeSession } from "../hosts/ssh.ts";
import { type Listener, LOOPBACK_6, openListener, type RunningServer, type ServeOptions } from "../listener.ts";
import { LiveConnection } from "../live/index.ts";
import type { Pipeline } from "../pipeline/pipeline.ts";
import { retryAfterOf, toProblem } from "../pipeline/problem.ts";
import { matchPath, type PathPattern, parsePath, rewritePath, toRoute } from "../pipeline/route.ts";
import { makeClientAddress } from "./client-address.ts";
import { makeDocuments } from "./docs.ts";
import { type IsFromHost, isForwarded, makeIsFromHost } from "./from-host.ts";
import { Arrival, HttpRequest, type Sender } from "./http-request.ts";
import { askAs } from "./live.ts";
import { answerForMcp, MCP_PATHS, type McpDoor } from "./mcp.ts";
import type { HttpOptions } from "./options.ts";
import { makePackages } from "./packages.ts";
import { answerForPort, portPlaceOf } from "./port-requests.ts";
import { addRate, problemResponse, setAll, toResponse, usualHeaders } from "./reply.ts";
import { tlsOf } from "./tls.ts";
import { answerForWeb, type Web } from "./web.ts";
import {
  foreignOrigin,
  isHandshake,
  isOwnOrigin,
  type SocketData,
  takenProtocol,
  tokenOf,
  UPGRADED,
  type Upgrade,
  websocket,
} from "./websocket.ts";

export interface HttpDeps {
  operations: readonly Bound[];
  road: Pipeline;
  aside: Aside;
  /** Gateway to servers in guests. */
  ports: Gate;
  mcp: McpDoor;
  /** Web pages; null if disabled. */
  web: Web | null;
  /** The name of this host. */
  host: string;
  /** Client for other hosts; null: standalone. */
  others: HostClient | null;
  /** Locator of other hosts' ports; null with `others`. */
  labels: Locator | null;
  /** SSH for other hosts; null: as above. */
  ssh: SshForHosts | null;
  /** Handlers of other hosts' further calls; null: as above. */
  peers: HostCalls | null;
  log: Log;
}

interface SshForHosts {
  /** Whether this host has an SSH access, by the hash of its token. */
  has(hash: string): boolean;
  /** Null: this host's SSH gateway is disabled. */
  take: TakeSession | null;
}

/** The arrival of each request, because the router passes on nothing but the request. */
type Arrivals = WeakMap<Request, Arrival>;

export interface HttpServer extends Pick<Listener, "url" | "stop"> {
  /** Uses a new certificate for new connections. Throws, and keeps the old certificate, if Bun rejects it. */
  useCertificate(certificate: Certificate): void;
  /** Serves the same operations to other hosts, which name the client. `members` are their certificates, as PEM. */
  serveMembers(
    address: { hostname: string; port: number },
    identity: { own: Certificate; members: readonly string[] },
  ): MembersListener;
}

export function makeHttpServer(deps: HttpDeps, options: HttpOptions): HttpServer {
  const arrivals: Arrivals = new WeakMap();
  const isEncrypted = options.tls !== null;
  const app = makeApp(deps, options, arrivals, isEncrypted);
  const clientAddress = makeClientAddress(options.trusted_proxies);
  const byLocalhost = isIPv4(options.hostname) && new URL(peopleUrl(options.url)).hostname === "localhost";
  // A client that connects to localhost may come from either address of this host: it is one client, and one proxy.
  const peerOf = (peer: string | null) => (byLocalhost && peer === LOOPBACK_6 ? LOOPBACK_4 : peer);
  const ofClient: SenderOf = (peer, headers, connection) => ({
    address: clientAddress(peerOf(peer), headers),
    connection,
  });
  const listener = openListener({ ...options, byLocalhost }, options.tls && tlsOf(options.tls), (listen) =>
    serve(deps, options, { app, arrivals, senderOf: ofClient, peers: null }, listen),
  );
  return {
    url: listener.url,
    useCertificate: (certificate) => listener.use(tlsOf(certificate), "goes on"),
    stop: listener.stop,
    serveMembers: (address, identity) => {
      const encrypted = isEncrypted ? app : makeApp(deps, options, arrivals, true);
      const ofMember: SenderOf = (_, headers) => ({ ...saidByEntry(headers), hop: 1 });
      return openMembersListener(address, identity, (listen) =>
        serve(deps, options, { app: encrypted, arrivals, senderOf: ofMember, peers: deps.peers }, listen),
      );
    },
  };
}

const LOOPBACK_4 = "127.0.0.1";

type SenderOf = (peer: string | null, headers: Headers, connection: string | null) => Sender;
type App = ReturnType<typeof makeApp>;

function makeApp(deps: HttpDeps, options: HttpOptions, arrivals: Arrivals, isEncrypted: boolean) {
  // Elysia looks for the path after 11 characters of the URL or after 7, which is within `https://`.
  const app = new Elysia({ normalize: false, handler: { standardHostname: isEncrypted } });
  const place = { url: options.url, isFromHost: makeIsFromHost(options.url) };
  const methodsOf = new Map<string, string[]>();

  for (const bound of deps.operations) {
    const { method, path, aliases = [] } = bound.operation;
    const own = parsePath(path);
    const methods = method === "GET" ? ["GET", "HEAD"] : [method];
    for (const pattern of [own, ...aliases.map(parsePath)]) {
      const handle = ({ request }: { request: Request }) =>
        answer(deps, place, bound, { pattern, own }, request, arrivals, (another) => app.fetch(another));
      for (const each of methods) app.route(each, toRoute(pattern), handle, { parse: "none" } as never);
      methodsOf.set(toRoute(pattern), [...(methodsOf.get(toRoute(pattern)) ?? []), ...methods]);
    }
  }
  const docsMethods = ["GET", "HEAD"];
  for (const [path, document] of makeDocuments(deps.host, options.url)) {
    for (const each of docsMethods)
      app.route(each, path, ({ request }) => document(requestIdOf(request), request.headers.get("accept")));
    methodsOf.set(path, docsMethods);
  }
  for (const [path, packaged] of makePackages(deps.host)) {
    for (const each of docsMethods)
      app.route(each, path, ({ request }) => packaged(request.headers, requestIdOf(request)));
    methodsOf.set(path, docsMethods);
  }
  for (const [route, methods] of methodsOf) {
    app.all(route, ({ request }) => refuse(deps, request, arrivals, new ServiceError("method_not_allowed"), methods), {
      parse: "none",
    });
  }
  app.all("/*", ({ request }) => refuse(deps, request, arrivals, new ServiceError("route_not_found")), {
    parse: "none",
  });
  app.onError(({ request, error, code }) =>
    refuse(deps, request, arrivals, code === "NOT_FOUND" ? new ServiceError("route_not_found") : error),
  );

  app.compile();
  return app;
}

/** Elysia skips 11 characters to find the path, more than `https://a` has: a host of one or two characters is padded, for routing only. */
function routable({ request, url }: Arrival, arrivals: Arrivals): Request {
  const arrival = arrivals.get(request);
  if (url.protocol !== "https:" || url.host.length > 2 || !arrival) return request;
  const longer = new Request(`https://${url.host.padEnd(3, "-")}${url.pathname}${url.search}`, request);
  arrivals.set(longer, arrival);
  return longer;
}

interface Served {
  app: App;
  arrivals: Arrivals;
  senderOf: SenderOf;
  /** Set on the listener that admits members only. */
  peers: HostCalls | null;
}

function serve(
  deps: HttpDeps,
  options: HttpOptions,
  { app, arrivals, senderOf, peers }: Served,
  listen: ServeOptions,
): RunningServer {
  return Bun.serve<SocketData>({
    ...listen,
    idleTimeout: IDLE_SECONDS,
    // File bodies are bounded by the drive's quota, all others when they are read.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    websocket,
    // Bun's own error page shows source code.
    development: false,
    error: (error) => unexpected(deps, error),
    fetch: async (request, server) => {
      const peer = server.requestIP(request);
      const address = peer?.address ?? null;
      // Otherwise all requests that are pipelined on one connection would be answered in one turn of the event loop.
      const connection = peer && `${peer.address} ${peer.port}`;
      const turn = deps.road.begin.request(address, connection ?? "");
      if (turn) await turn;
      const url = URL.parse(request.url);
      if (!url || !HOST.test(request.headers.get("host") ?? "")) return hostless(deps, request);
      // The next request of a proxy's connection may be another client's: it must not queue as this caller's.
      const sender = senderOf(address, request.headers, isForwarded(request.headers) ? null : connection);
      // A client that waits for a response, or reads a silent stream, is not idle.
      server.timeout(request, 0);
      const arrival = new Arrival(server, request, url, sender, requestIdOf(request));
      const port = portPlaceOf(deps.ports, request, url);
      if (port) {
        const settled = () => server.timeout(request, UNREAD_SECONDS);
        const upgraded: Upgrade = (conversation, headers) => arrival.upgrade(conversation, headers);
        const { address: ip, hop } = sender;
        const portRequest = { request, url, place: port, ip, hop, upgrade: upgraded, settled };
        const response = await answerForPort({ ...deps, gate: deps.ports }, portRequest);
        return response === UPGRADED ? undefined : response;
      }
      if (sender.hop !== undefined) {
        // Not if it is forwarded for a client: its path may be anything.
        const peer = peers && !isCarried(request.headers) ? answerPeer(peers, deps.log, request, url) : null;
        if (peer) return await peer;
        const answers = { ports: deps.ports.has, sshAccesses: (hash: string) => deps.ssh?.has(hash) ?? false };
        const locatorResponse = answerLocator(url, answers);
        if (locatorResponse) return locatorResponse;
        const take = (isSshPath(url) && isHandshake(request.headers) && deps.ssh?.take) || null;
        if (take && arrival.upgrade(take(sender.address), new Headers())) return undefined;
      }
      arrivals.set(request, arrival);
      const { web } = deps;
      const isMcp = MCP_PATHS.includes(url.pathname);
      const response = isMcp
        ? await answerForMcp({ ...deps, challenge: web?.challenge ?? null }, options, arrival)
        : !isOfApi(url) && web?.has(url.pathname)
          ? await answerForWeb(web, deps, arrival)
          : await app.fetch(routable(arrival, arrivals));
      if (response === UPGRADED) return undefined;
      if (response.status === 401 || response.status === 429) await deps.road.failuresWritten();
      const type = response.headers.get("content-type");
      if (type?.endsWith("json")) server.timeout(request, IDLE_SECONDS);
      // Only an event stream may be silent for longer: a file is sent as fast as the client reads it.
      else if (type !== "text/event-stream") server.timeout(request, UNREAD_SECONDS);
      return response;
    },
  });
}

/** One name or address, and a port. Bun joins two Host headers to a list, which is invalid; for an invalid URL it gives a path alone. */
const HOST = /^(?:[\w.~-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?$/;

/** A connection without a request is closed after this time. */
const IDLE_SECONDS = 120;
/** For a client that reads nothing of its response; the longest time that Bun's server supports, so that the slowest are not cut. */
const UNREAD_SECONDS = 255;

async function answer(
  deps: HttpDeps,
  { url: publicUrl, isFromHost }: { url: string; isFromHost: IsFromHost },
  bound: Bound,
  { pattern, own }: { pattern: PathPattern; own: PathPattern },
  request: Request,
  arrivals: Arrivals,
  again: (request: Request) => Response | Promise<Response>,
): Promise<Response> {
  const arrival = arrivals.get(request);
  if (!arrival) throw new Error("the request arrived through an unknown server");
  const { url, request_id } = arrival;
  const params = matchPath(pattern, url.pathname);
  if (!params) return refuse(deps, request, arrivals, new ServiceError("route_not_found"));
  const { headers } = request;
  const wantsSocket = isHandshake(headers);
  // The entry host checks the origin of the page.
  if (wantsSocket && arrival.hop === undefined && !isOwnOrigin(headers, publicUrl)) {
    const shown = usualHeaders(request_id, deps.host);
    return problemResponse(toProblem(foreignOrigin(), request_id, deps.log), shown, null);
  }
  const authorization = headers.get("authorization");
  const token = wantsSocket ? tokenOf(headers, bound.operation, url) : null;
  // A key or token that is sent identifies the caller, whatever cookie the browser adds.
  const session = authorization === null && token === null ? (deps.web?.sessionOf(headers) ?? null) : null;
  const path = pattern === own ? url.pathname : rewritePath(url.pathname, pattern, own);
  const read = { params, path, authorization, token, session, websocket: wantsSocket };
  const door = { isFromHost, aside: deps.aside, others: deps.others, host: deps.host };
  const reply = await deps.road.run(bound, new HttpRequest(arrival, door, read));
  const conversation = reply.kind === "done" ? reply.done.conversation : undefined;
  if (conversation instanceof LiveConnection) conversation.askBy(askAs(arrival, session !== null, arrivals, again));
  if (conversation) {
    const own = () => addRate(usualHeaders(request_id, deps.host), reply.rate);
    const elsewhere = reply.kind === "done" ? reply.done.answer?.headers : undefined;
    if (arrival.upgrade(conversation, elsewhere ?? setAll(takenProtocol(headers), own()))) return UPGRADED;
    conversation.left();
    return refuse(
      deps,
      request,
      arrivals,
      new ServiceError("invalid_body", { detail: "The request is not a valid WebSocket handshake." }),
    );
  }
  const response = toResponse(reply, request_id, deps.host, headers.get("accept"), termsOf(headers.get("user-agent")));
  // A HEAD request reads nothing of a stream.
  if (request.method === "HEAD" && reply.kind === "done" && (reply.done.events || reply.done.stream))
    await response.body?.cancel();
  return response;
}

const isOfApi = ({ pathname }: URL) => pathname.startsWith("/v1/");

/** Answers requests without an operation; under /v1 only for callers with a key, like everything there. */
function refuse(
  deps: HttpDeps,
  request: Request,
  arrivals: Arrivals,
  error: unknown,
  allow?: readonly string[],
): Response {
  const arrival = arrivals.get(request);
  const request_id = arrival?.request_id ?? requestIdOf(request);
  const headers = usualHeaders(request_id, deps.host);
  let shown = error;
  if (isOfApi(new URL(request.url))) {
    const { refusal, rate } = deps.road.identify({
      authorization: request.headers.get("authorization"),
      source: "rest",
      request_id,
      ip: arrival?.ip ?? null,
    });
    shown = refusal ?? error;
    addRate(headers, rate);
  }
  if (shown === error && allow) headers.Allow = allow.join(", ");
  const problem = toProblem(shown, request_id, deps.log);
  return problemResponse(problem, headers, retryAfterOf(shown, problem));
}

/** Answers requests that name no host, or several: a relay may have meant another. */
function hostless({ log, host }: HttpDeps, request: Request): Response {
  const request_id = requestIdOf(request);
  const headers = usualHeaders(request_id, host);
  const error = new ServiceError("invalid_body", { detail: "The header Host must name one host." });
  return problemResponse(toProblem(error, request_id, log), headers, null);
}

/** Answers unhandled errors, which are bugs. */
function unexpected({ log, host }: HttpDeps, error: unknown): Response {
  const request_id = newId("req");
  const headers = usualHeaders(request_id, host);
  return problemResponse(toProblem(error, request_id, log), headers, null);
}

export function requestIdOf(request: Request): string {
  const own = request.headers.get(REQUEST_HEADERS.request_id.name);
  return own !== null && REQUEST_ID.test(own) ? own : newId("req");
}

const REQUEST_ID = new RegExp(REQUEST_ID_PATTERN);
