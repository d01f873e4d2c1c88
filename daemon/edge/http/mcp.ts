/**
 * HTTP endpoint of the MCP transport: authentication and reading of messages. Their meaning is in the MCP transport.
 *
 *     host, origin → key → method → message → the MCP transport
 */
import { isIP } from "node:net";
import { hostname } from "node:os";
import type { Problem } from "../../../shared/api/errors.ts";
import { GRANT_SCOPES } from "../../../shared/api/grants.ts";
import { TOOL_SETS, type ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import type { KeyId } from "../../../shared/ids.ts";
import { readTraceparent, TRACEPARENT, type TraceContext } from "../../../shared/traceparent.ts";
import { type Caller, firstKeyOf } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Aside } from "../../host/aside/pool.ts";
import type { Pipeline } from "../pipeline/pipeline.ts";
import { retryAfterOf, toProblem } from "../pipeline/problem.ts";
import type { Rate } from "../pipeline/rate-limit.ts";
import { readJsonMessage } from "./body.ts";
import type { HttpOptions } from "./options.ts";
import { addRate, problemResponse, setAll, usualHeaders } from "./reply.ts";
import { isOwnOrigin } from "./websocket.ts";

const SET_NAMES = Object.keys(TOOL_SETS) as ToolSet[];
/** Path for clients with a key, without a way to sign in: some clients try sign-in first and drop their key. */
const keyPathOf = (set: ToolSet) => `${TOOL_SETS[set].path}/key`;
const MCP_KEY_PATHS = SET_NAMES.map(keyPathOf);
export const MCP_PATHS: readonly string[] = [...SET_NAMES.map((set) => TOOL_SETS[set].path), ...MCP_KEY_PATHS];
const METHODS = ["POST", "DELETE"];
const CALL = "tools/call";
/** Size of the largest tool arguments: a file of 16 MiB. */
const MAX_MESSAGE_BYTES = 23 * 1024 * 1024;

/** A message of an authenticated caller. */
export interface McpMessage {
  request: Request;
  message: Record<string, unknown>;
  /** Size of the message. */
  bytes: number;
  caller: Caller;
  /** Identity of the key across rotations. */
  first_key_id: KeyId;
  authorization: string | null;
  ip: string | null;
  request_id: string;
  /** The trace that the request continues, if its message has no other. */
  trace: TraceContext | null;
  /** Which tools it finds. */
  tool_set: ToolSet;
  /** Rate after this request, for the first operation of a tool call. */
  rate?: Rate | null;
}

export interface McpDoor {
  answer(mcpRequest: McpMessage): Promise<Response>;
  /** Drops the cached state of a client. */
  forget(mcpRequest: { request: Request; key_id: KeyId }): void;
}

interface McpDeps {
  mcp: McpDoor;
  /** Points applications to the sign-in page; null if they cannot sign in. */
  challenge: ((lacks: readonly string[] | null, requestedUrl: URL) => string | null) | null;
  road: Pipeline;
  aside: Aside;
  host: string;
  log: Log;
}

interface McpHttpRequest {
  request: Request;
  url: URL;
  ip: string | null;
  connection: string | null;
  request_id: string;
}

/** Never throws. */
export async function answerForMcp(deps: McpDeps, options: HttpOptions, mcpRequest: McpHttpRequest): Promise<Response> {
  const { request_id } = mcpRequest;
  const headers = usualHeaders(request_id, deps.host);
  try {
    const response = await answer(deps, options, mcpRequest);
    setAll(response.headers, headers);
    return response;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "method_not_allowed") headers.Allow = METHODS.join(", ");
    const problem = toProblem(error, request_id, deps.log);
    const challenge = challengeOf(deps, mcpRequest.url, problem);
    if (challenge !== null) headers["WWW-Authenticate"] = challenge;
    return problemResponse(problem, headers, retryAfterOf(error, problem));
  }
}

/** The challenge that shows a refused client how to get access. */
function challengeOf({ challenge }: McpDeps, requestedUrl: URL, { status, code, details }: Problem): string | null {
  if (MCP_KEY_PATHS.includes(requestedUrl.pathname) || challenge === null) return null;
  if (status === 401) return challenge(null, requestedUrl);
  return code === "insufficient_scope" && Array.isArray(details.scopes)
    ? challenge(details.scopes, requestedUrl)
    : null;
}

async function answer(
  { mcp, road, aside }: McpDeps,
  options: HttpOptions,
  mcpRequest: McpHttpRequest,
): Promise<Response> {
  const { request, url, ip, request_id, connection } = mcpRequest;
  const authorization = request.headers.get("authorization");
  const credentials = { authorization, source: "mcp", request_id, ip } as const;
  const caller = road.recognise(credentials);
  const { key_id } = caller;
  requireOwnHost(url.hostname, options);
  if (!isOwnOrigin(request.headers, options.url)) {
    throw new ServiceError("source_mismatch", { detail: "A web page can use MCP only on the origin that served it." });
  }
  if (request.method === "DELETE") {
    mcp.forget({ request, key_id });
    return new Response(null, { status: 204 });
  }
  if (request.method !== "POST") throw new ServiceError("method_not_allowed");
  // Identifies the caller before the body is read, and also for a nonexistent tool, which has no operation to count.
  const { refusal, rate } = road.identify(credentials);
  const turn = road.begin.call(caller, "mcp", rate?.isWithin ?? true, connection);
  if (turn) await turn;
  if (refusal) throw refusal;
  const { message, bytes } = await readJsonMessage(request, MAX_MESSAGE_BYTES, aside);
  road.begin.goesOn(caller, "mcp");
  const tool_set = setOf(url.pathname);
  requireGranted(caller, tool_set, message);
  const trace = readTraceparent(request.headers.get(TRACEPARENT));
  // The first operation of a tool call counts as this request.
  const rateInfo = message.method === CALL ? { rate } : {};
  const visit = { bytes, caller, first_key_id: firstKeyOf(caller), authorization, ip, request_id, trace, tool_set };
  const response = await mcp.answer({ request, message, ...visit, ...rateInfo });
  setAll(response.headers, addRate({}, rate));
  return response;
}

function setOf(path: string): ToolSet {
  return SET_NAMES.find((set) => path === TOOL_SETS[set].path || path === keyPathOf(set)) ?? "usual";
}

/** An application can request a missing scope from its user, and does so if the whole request is refused. Throws insufficient_scope. */
function requireGranted(
  { granted, scopes }: Caller,
  toolSet: ToolSet,
  { method, params }: Record<string, unknown>,
): void {
  if (!granted || method !== CALL) return;
  const access = TOOL_SETS[toolSet].tools.get(String(Object(params).name))?.operation.access;
  const isGrantable = GRANT_SCOPES.some((scope) => scope === access);
  if (!isGrantable || (scopes as readonly unknown[]).includes(access)) return;
  throw new ServiceError("insufficient_scope", {
    detail: `The call needs the scope ${access}, which the application was not granted.`,
    details: { required: access, scopes: [...scopes, access] },
  });
}

/**
 * DNS rebinding: a page can point its own host name to this address, and then has the same origin. Not possible with an address as host,
 * nor under TLS, since the certificate proves the name. Throws source_mismatch.
 */
function requireOwnHost(host: string, { tls, url }: HttpOptions): void {
  const isAddress = isIP(host.replace(/^\[|\]$/g, "")) !== 0;
  const names = ["localhost", hostname().toLowerCase(), new URL(url).hostname];
  if (tls !== null || isAddress || names.includes(host)) return;
  throw new ServiceError("source_mismatch", {
    detail: `${host.slice(0, 128)} is not a name of this service.`,
    hint: "The operator has to set http.base_url to the URL that clients use.",
  });
}
