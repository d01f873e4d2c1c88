/**
 * The MCP transport: messages of clients that the HTTP transport has authenticated. The SDK serves both generations of the protocol without
 * state between messages; the optional state is in sessions.ts.
 */
import { randomUUID } from "node:crypto";
import {
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  isInitializeRequest,
  type McpRequestContext,
} from "@modelcontextprotocol/server";
import type { ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import { within } from "../../core/concurrency/published.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { AuditEntry } from "../../domain/audit/index.ts";
import type { CallDeps, Visit } from "./call.ts";
import { Connected } from "./connected.ts";
import { type Client, makeServer } from "./server.ts";
import { Sessions } from "./sessions.ts";

interface McpRequest extends Visit {
  request: Request;
  message: Record<string, unknown>;
  caller: Caller;
  tool_set: ToolSet;
}

const SESSION_HEADER = "mcp-session-id";
/** First method of clients of the newest revision. */
const DISCOVER = "server/discover";
const SESSION_NAME = /^[\x21-\x7e]{1,128}$/;

interface McpDoorDeps extends CallDeps {
  log: Log;
  /** Writes it, soon. Never throws. */
  record(entry: AuditEntry): void;
}

export function makeMcpDoor(deps: McpDoorDeps) {
  const sessions = new Sessions();
  const connected = new Connected(deps.record);
  const clients = new WeakMap<Request, Client>();
  const calls = new Set<Promise<unknown>>();
  const track = (call: Promise<unknown>) => {
    const settled = call.catch(() => {}).finally(() => calls.delete(settled));
    calls.add(settled);
  };
  const handler = createMcpHandler(
    ({ requestInfo }: McpRequestContext) => {
      const client = requestInfo && clients.get(requestInfo);
      if (!client) throw new Error("the SDK serves a request that it was not given");
      return makeServer(deps, client, track);
    },
    { onerror: (error) => deps.log.debug("mcp", { error: describeError(error) }) },
  );

  return {
    answer: async ({ request, message, caller, tool_set, ...visit }: McpRequest): Promise<Response> => {
      const { key_id } = caller;
      const { ip, request_id } = visit;
      connected.hear(caller, message, { ip, request_id });
      const isOpening = isInitializeRequest(message);
      const opened = isOpening ? randomUUID() : null;
      const session = sessions.of(key_id, opened ?? sessionOf(request, message));
      if (message.method === DISCOVER) session.open();
      const cancelled = cancelledIn(message);
      // Call numbers are unique within a session only.
      if (cancelled !== null && request.headers.has(SESSION_HEADER)) session.cancel(cancelled);
      clients.set(request, { ...visit, session, tool_set, org_id: caller.org_id, agent_id: caller.agent_id ?? null });
      const response = await handler.fetch(request, { parsedBody: message });
      if (opened !== null && response.ok) response.headers.set(SESSION_HEADER, opened);
      return response;
    },
    forget: ({ request, key_id }: { request: Request; key_id: KeyId }) => sessions.end(key_id, sessionOf(request, {})),
    /** Ends calls in progress when their responses are sent or `graceMs` is over. */
    stop: async (graceMs: number) => {
      await within(Promise.all(calls), graceMs, "the answers of tools").catch(() => {});
      await handler.close();
    },
  };
}

/** Clients of the newest revision have no session: the client's name and version distinguish it from others of the same key. */
function sessionOf(request: Request, message: Record<string, unknown>): string {
  const given = request.headers.get(SESSION_HEADER);
  if (given !== null && SESSION_NAME.test(given)) return given;
  const { name, version } = Object(Object(Object(message.params)._meta)[CLIENT_INFO_META_KEY]);
  return `${name} ${version}`.slice(0, 256);
}

/** The call that a client has cancelled by a notification. */
function cancelledIn({ method, params }: Record<string, unknown>): string | number | null {
  if (method !== "notifications/cancelled") return null;
  const { requestId } = Object(params);
  return typeof requestId === "string" || typeof requestId === "number" ? requestId : null;
}
