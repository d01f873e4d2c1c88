/**
 * The MCP server for a client: the lists of tools and prompts, and a call from its arguments to its result. A server is created for each
 * request, which is the SDK's way to serve both generations of the protocol; the lists are created once.
 */
import {
  type CallToolRequest,
  type CallToolResult,
  type ListToolsResult,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { TOOL_SETS, type ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import { SMALL_INSTRUCTIONS } from "../../../shared/api/mcp/small-tools.ts";
import { argumentNames, listedInput, outputSchemaOf, type Tool } from "../../../shared/api/mcp/tool.ts";
import { INSTRUCTIONS } from "../../../shared/api/mcp/tools.ts";
import { spelled } from "../../../shared/api/spelling.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { readTraceparent, TRACEPARENT } from "../../../shared/traceparent.ts";
import { VERSION } from "../../../shared/version.ts";
import { beginOrRoot, type Span } from "../../core/call/traces.ts";
import { type NextCall, structured, type ToolAnswer, toolResult } from "./answer.ts";
import { type Arguments, type CallDeps, ToolCall, type Visit } from "./call.ts";
import { fillIn } from "./fill-in.ts";
import { noSuchTool } from "./nearest-tool.ts";
import { preflight, takeLooked } from "./preflight.ts";
import { reportProgress } from "./progress.ts";
import { getPrompt, LISTED_PROMPTS } from "./prompts.ts";
import type { Session } from "./sessions.ts";
import { bounded } from "./shorten.ts";
import { smallCall } from "./small/next.ts";
import { meantTool, namesSandbox, understand } from "./synonyms.ts";
import { carryOut } from "./tools/index.ts";

/** How long a client may cache the list of tools, which changes only with the daemon's version. */
const LIST_TTL_MS = 60 * 60_000;

const listed = (tools: ReadonlyMap<string, Tool>) =>
  [...tools.values()].map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: listedInput(tool),
    outputSchema: outputSchemaOf(tool),
    annotations: tool.hints,
  })) as ListToolsResult["tools"];

const LISTED: Record<ToolSet, ListToolsResult["tools"]> = {
  usual: listed(TOOL_SETS.usual.tools),
  small: listed(TOOL_SETS.small.tools),
  all: listed(TOOL_SETS.all.tools),
};

/** The client of a server. */
export interface Client extends Visit {
  session: Session;
  tool_set: ToolSet;
  org_id: OrgId;
  /** The agent that the key is bound to; null: none. */
  agent_id: string | null;
}

/** `track` is called with every call. */
export function makeServer(deps: CallDeps, client: Client, track: (call: Promise<unknown>) => void): Server {
  const cache = { ttlMs: LIST_TTL_MS, cacheScope: "public" as const };
  const server = new Server(
    { name: "roomd", title: "roomd", version: VERSION },
    {
      capabilities: { tools: {}, prompts: {} },
      instructions: client.tool_set === "small" ? SMALL_INSTRUCTIONS : INSTRUCTIONS,
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
  const sent = (params.arguments ?? {}) as Arguments;
  const tool = tools.get(meantTool(params.name, sent));
  if (!tool) return toolResult(noSuchTool(params.name, [...tools.keys()]));
  const { session } = client;
  const { given, taken } = understand(tool, sent);
  const notes = [...taken.map((each) => `took ${each}`), ...fillIn(tool, given, client)];
  const span = toolSpan(deps, client, tool, params._meta);
  const { signal, over } = session.begin(context.mcpReq.id);
  const either = AbortSignal.any([context.mcpReq.signal, signal]);
  const progress = reportProgress(tool.name, context);
  try {
    const own = `mcp-${client.first_key_id.slice(-8)}`;
    const translate = client.tool_set === "small" ? { translate: (next: NextCall) => smallCall(next, own) } : {};
    const toolRequest = { tool, given, signal: either, ...translate };
    const call = new ToolCall(deps, { ...client, trace: span.context }, toolRequest);
    await preflight(call, session);
    const answer = advised(await carryOut(call), tool, tools);
    span.end(answer.ok ? {} : { problem: answer.problem.code, isFault: answer.problem.status >= 500 });
    return resultOf(answer, call.isLimited, notes, answer.ok ? takeLooked(session) : null);
  } finally {
    progress.stop();
    over();
    // A call without an answer or refusal was cancelled, or is a bug.
    span.end({ problem: either.aborted ? "cancelled" : "internal" });
  }
}

function resultOf(
  answer: ToolAnswer,
  isLimited: boolean,
  notes: string[],
  preflightResult: Arguments | null,
): CallToolResult {
  const shown = answer.ok && !isLimited ? { ...answer, result: bounded(answer.result) } : answer;
  const more = { ...(notes.length > 0 ? { notes } : {}), ...(preflightResult ? { preflight: preflightResult } : {}) };
  const content = { ...structured(shown), ...more };
  if (!answer.ok || answer.text === undefined) {
    return toolResult(content, answer.ok && answer.picture ? { picture: answer.picture } : {});
  }
  return toolResult(content, { text: notes.length > 0 ? `[${notes.join("; ")}]\n${answer.text}` : answer.text });
}

const DRIVE_TOOLS = "fs_";
const DRIVE_HINT =
  "Its files are those of the room's drive, /mnt/drive in every sandbox; sandbox_exec reads and writes a sandbox's other files. ";

/** A refusal's hint in terms of the client's tools; for unknown arguments, the list of known ones. */
function advised(answer: ToolAnswer, tool: Tool, tools: ReadonlyMap<string, unknown>): ToolAnswer {
  if (answer.ok) return answer;
  const { problem } = answer;
  const unknown = problem.errors.filter(({ code, field }) => code === "unknown_field" && !field.includes("."));
  const ofDrive = tool.name.startsWith(DRIVE_TOOLS) && unknown.some(({ field }) => namesSandbox(field));
  const hint =
    unknown.length > 0
      ? `${ofDrive ? DRIVE_HINT : ""}${tool.name} takes ${argumentNames(tool).join(", ")}.`
      : problem.hint && spelled(problem.hint, { kind: "mcp", tools });
  return { ...answer, problem: { ...problem, hint } };
}

/** Span of a tool's call: its parent is in `_meta`, else in its HTTP request. */
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
