/**
 * Owns what an MCP client meets: the lists of tools and prompts, and a call from its arguments to its result. A server is made for each
 * request, by the SDK's way of serving both generations of the protocol; what it shows is made once.
 */
import {
  type CallToolRequest,
  type CallToolResult,
  INVALID_PARAMS,
  type ListToolsResult,
  ProtocolError,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { plain } from "../../../shared/api/contract.ts";
import { TOOL_SETS, type ToolSet } from "../../../shared/api/more-tools.ts";
import { outputSchemaOf, type Tool } from "../../../shared/api/tool.ts";
import { INSTRUCTIONS } from "../../../shared/api/tools.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { readTraceparent, TRACEPARENT } from "../../../shared/traceparent.ts";
import { VERSION } from "../../../shared/version.ts";
import { beginOrRoot, type Span } from "../../core/traces.ts";
import { structured, toolResult } from "./answer.ts";
import { type Arguments, type CallDeps, ToolCall, type Visit } from "./call.ts";
import { preflight } from "./preflight.ts";
import { reportProgress } from "./progress.ts";
import { getPrompt, LISTED_PROMPTS } from "./prompts.ts";
import type { Session } from "./sessions.ts";
import { carryOut } from "./tools/index.ts";

/** How long a client may keep the list: it changes with the daemon's version only. */
const LIST_TTL_MS = 60 * 60_000;

const listed = (tools: ReadonlyMap<string, Tool>) =>
  [...tools.values()].map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: plain(tool.input),
    outputSchema: outputSchemaOf(tool),
    annotations: { title: tool.title, ...tool.hints },
  })) as ListToolsResult["tools"];

const LISTED: Record<ToolSet, ListToolsResult["tools"]> = {
  usual: listed(TOOL_SETS.usual.tools),
  all: listed(TOOL_SETS.all.tools),
};

/** Whose request a server is for. */
export interface Client extends Visit {
  session: Session;
  tool_set: ToolSet;
  org_id: OrgId;
}

/** `track` is told of every call. */
export function makeServer(deps: CallDeps, client: Client, track: (call: Promise<unknown>) => void): Server {
  const cache = { ttlMs: LIST_TTL_MS, cacheScope: "public" as const };
  const server = new Server(
    { name: "roomd", title: "roomd", version: VERSION },
    {
      capabilities: { tools: {}, prompts: {} },
      instructions: INSTRUCTIONS,
      cacheHints: { "tools/list": cache, "prompts/list": cache },
    },
  );
  server.setRequestHandler("tools/list", () => ({ tools: LISTED[client.tool_set] }));
  server.setRequestHandler("prompts/list", () => ({ prompts: LISTED_PROMPTS[client.tool_set] }));
  server.setRequestHandler("prompts/get", getPrompt);
  server.setRequestHandler("tools/call", (request, context) => {
    const called = callTool(deps, client, request, context);
    track(called);
    return called;
  });
  return server;
}

async function callTool(
  deps: CallDeps,
  client: Client,
  { params }: CallToolRequest,
  context: ServerContext,
): Promise<CallToolResult> {
  const { tools } = TOOL_SETS[client.tool_set];
  const tool = tools.get(params.name);
  if (!tool) throw new ProtocolError(INVALID_PARAMS, `There is no tool ${params.name.slice(0, 128)}.`);
  const { session } = client;
  const span = toolSpan(deps, client, tool, params._meta);
  const { signal, over } = session.begin(context.mcpReq.id);
  const either = AbortSignal.any([context.mcpReq.signal, signal]);
  const progress = reportProgress(tool.name, context);
  try {
    const given = (params.arguments ?? {}) as Arguments;
    const call = new ToolCall(deps, { ...client, trace: span.context }, { tool, given, signal: either });
    const looked = await preflight(call, session);
    const answer = await carryOut(call);
    span.end(answer.ok ? {} : { problem: answer.problem.code, isFault: answer.problem.status >= 500 });
    const content = { ...structured(answer), ...(looked ? { preflight: looked } : {}) };
    return toolResult(content, answer.ok ? answer.picture : undefined);
  } finally {
    progress.stop();
    over();
    // What has neither answered nor is refused was given up, or is a bug.
    span.end({ problem: either.aborted ? "cancelled" : "internal" });
  }
}

/** Of a tool's call: it continues what its `_meta` says, else what its HTTP request says. */
function toolSpan({ traces }: CallDeps, client: Client, tool: Tool, meta: Record<string, unknown> | undefined): Span {
  const parent = readTraceparent(meta?.[TRACEPARENT]) ?? client.trace;
  return beginOrRoot(traces, parent, !tool.hints.readOnlyHint, {
    name: `tools/call ${tool.name}`,
    kind: "server",
    attributes: {
      "roomd.org_id": client.org_id,
      "roomd.request_id": client.request_id,
      "mcp.method.name": "tools/call",
      "gen_ai.tool.name": tool.name,
    },
  });
}
