/** Owns MCP clients for tests: the official ones of both generations, over HTTP and over the CLI's stdio, and none: one message alone. */
import { Client as NewClient, StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { type Answer, answerOf, BINARY, type Json, type TestDaemon } from "./daemon.ts";

export const GENERATIONS = ["2026", "2025", "v1"] as const;
export type Generation = (typeof GENERATIONS)[number];
export type Way = "http" | "stdio";

export interface CallOptions {
  signal?: AbortSignal;
  onprogress?: (progress: Json) => void;
}

export interface McpClient {
  listTools(): Promise<Json>;
  listPrompts(): Promise<Json>;
  prompt(name: string, given?: Record<string, string>): Promise<Json>;
  instructions(): string | undefined;
  /** The structured content, which the client has held against the tool's output schema. */
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Json>;
  /** The whole result. */
  result(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Json>;
  close(): Promise<void>;
}

export interface ClientOptions {
  generation?: Generation;
  way?: Way;
  key?: string;
  name?: string;
  /** Which tools it asks for. */
  tools?: "usual" | "all";
}

/** `2026`: the v2 client by the newest revision; `2025`: the same by the one before; `v1`: the client before it. */
export async function connectMcp(daemon: TestDaemon, options: ClientOptions = {}): Promise<McpClient> {
  const { generation = "2026", way = "http", key = daemon.apiKey, name = "test", tools = "usual" } = options;
  const http = [
    new URL(`${daemon.url}/mcp${tools === "all" ? "/all" : ""}`),
    { requestInit: { headers: { authorization: `Bearer ${key}` } } },
  ] as const;
  const env = { PATH: daemon.env.PATH ?? "", ROOMD_URL: daemon.url, ROOMD_API_KEY: key };
  const stdio = {
    command: BINARY,
    args: tools === "all" ? ["mcp", "--tools", "all"] : ["mcp"],
    env,
    stderr: "inherit" as const,
  };
  const timeout = 60_000;
  if (generation === "v1") {
    const client = new OldClient({ name, version: "1" });
    await client.connect(way === "http" ? new OldHttp(...http) : new OldStdio(stdio));
    return wrap(client, (params, given) => client.callTool(params, undefined, { timeout, ...given }));
  }
  const mode = generation === "2026" ? { pin: "2026-07-28" } : ("legacy" as const);
  const client = new NewClient({ name, version: "2" }, { versionNegotiation: { mode } });
  await client.connect(way === "http" ? new NewHttp(...http) : new NewStdio(stdio));
  return wrap(client, (params, given) => client.callTool(params, { timeout, ...given }));
}

interface AnyClient {
  listTools(): Promise<Json>;
  listPrompts(): Promise<Json>;
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<Json>;
  getInstructions(): string | undefined;
  close(): Promise<void>;
}

type Call = (params: { name: string; arguments: Record<string, unknown> }, options: CallOptions) => Promise<Json>;

function wrap(client: AnyClient, send: Call): McpClient {
  const result: McpClient["result"] = (name, args = {}, options = {}) => send({ name, arguments: args }, options);
  return {
    listTools: () => client.listTools(),
    listPrompts: () => client.listPrompts(),
    prompt: (name, given = {}) => client.getPrompt({ name, arguments: given }),
    instructions: () => client.getInstructions(),
    result,
    call: async (...asked) => (await result(...asked)).structuredContent,
    close: () => client.close(),
  };
}

/** One call by one message, without a client: the answer's body is the result's structured content, or a problem. */
export async function callTool(
  daemon: TestDaemon,
  headers: Record<string, string>,
  name: string,
  args: Record<string, unknown>,
): Promise<Answer> {
  const response = await fetch(`${daemon.url}/mcp`, {
    method: "POST",
    headers: { accept: "application/json, text/event-stream", "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const { body, ...answer } = await answerOf(response);
  const message = typeof body === "string" ? JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? "null") : body;
  return { ...answer, body: message?.result?.structuredContent ?? message };
}
