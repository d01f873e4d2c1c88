/**
 * HTTP requests that arrive by another transport than the HTTP port, from callers that it has authenticated: the same operations, pipeline
 * and responses.
 */
import type { Source } from "../../../shared/api/audit.ts";
import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { readTraceparent } from "../../../shared/traceparent.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { PipelineRequest } from "../pipeline/pipeline.ts";
import { toProblem } from "../pipeline/problem.ts";
import { matchPath, parsePath, rewritePath } from "../pipeline/route.ts";
import { readJsonBody } from "./body.ts";
import { takesLines } from "./events.ts";
import { readQuery } from "./query.ts";
import { problemResponse, toResponse, usualHeaders } from "./reply.ts";
import { type HttpDeps, requestIdOf } from "./server.ts";

export interface KnownCaller {
  source: Source;
  recognise(): Caller;
  /** Restricts an operation for this caller. */
  within(bound: Bound): Bound;
}

interface MatchedRoute {
  bound: Bound;
  params: Record<string, string>;
  /** The request's path in the form of the operation's own path. */
  path: string;
}

/** Never rejects. */
export type Direct = (request: Request, known: KnownCaller) => Promise<Response>;

/** `operations` are those available by this transport. */
export function makeDirect(deps: Omit<HttpDeps, "ports" | "mcp" | "web" | "labels">): Direct {
  const routes = deps.operations
    .filter(({ operation }) => operation.path !== "")
    .flatMap((bound) => {
      const { path, aliases = [] } = bound.operation;
      const own = parsePath(path);
      return [own, ...aliases.map(parsePath)].map((pattern) => ({ bound, pattern, own }));
    });

  const find = (method: string, path: string): MatchedRoute | null => {
    const length = path.split("/").length;
    for (const { bound, pattern, own } of routes) {
      const rest = pattern.at(-1)?.rest === true;
      if (bound.operation.method !== method || (rest ? length < pattern.length : length !== pattern.length)) continue;
      const params = matchPath(pattern, path);
      if (params) return { bound, params, path: pattern === own ? path : rewritePath(path, pattern, own) };
    }
    return null;
  };

  return async (request, { source, recognise, within }) => {
    const request_id = requestIdOf(request);
    const url = new URL(request.url);
    const found = find(request.method === "HEAD" ? "GET" : request.method, url.pathname);
    if (!found) {
      const headers = usualHeaders(request_id, deps.host);
      return problemResponse(toProblem(new ServiceError("route_not_found"), request_id, deps.log), headers, null);
    }
    const { headers } = request;
    const onRoad: PipelineRequest = {
      source,
      recognise,
      request_id,
      ip: null,
      authorization: null,
      token: null,
      path: found.path,
      params: found.params,
      query: () => readQuery(url.search),
      body: (maxBytes) => readJsonBody(request, maxBytes, { aside: deps.aside }),
      idempotency_key: headers.get(REQUEST_HEADERS.idempotency_key.name),
      trace: readTraceparent(headers.get(REQUEST_HEADERS.traceparent.name)),
      transfer: {
        body: request.body,
        range: headers.get(REQUEST_HEADERS.range.name),
        if_match: headers.get(REQUEST_HEADERS.if_match.name),
        if_none_match: headers.get(REQUEST_HEADERS.if_none_match.name),
        websocket: false,
        last_event_id: headers.get(REQUEST_HEADERS.last_event_id.name),
        ndjson: takesLines(headers),
      },
      signal: request.signal,
    };
    const reply = await deps.road.run(within(found.bound), onRoad);
    return toResponse(reply, request_id, deps.host, headers.get("accept"));
  };
}
