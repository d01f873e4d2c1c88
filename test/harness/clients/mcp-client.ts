/**
 * MCP clients for tests: the official ones of both generations, over HTTP and over the CLI's stdio, and a single message without a client.
 */
import { Client as NewClient, StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { StdioClientTransport as NewStdio } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { type Answer, answerOf, BINARY, type Json, type TestDaemon } from "../daemon.ts";

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
  /**
   * The structured content, which the client has validated against the tool's output schema. For a command or a file the result also has
   * the output from the text: stdout and stderr, or content.
   */
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
  /** The tool list that it requests. */
  tools?: "usual" | "small" | "all";
}

/** `2026`: the v2 client with the newest revision; `2025`: the same client with the previous revision; `v1`: the v1 client. */
export async function connectMcp(daemon: TestDaemon, options: ClientOptions = {}): Promise<McpClient> {
  const { generation = "2026", way = "http", key = daemon.apiKey, name = "test", tools = "usual" } = options;
  const http = [
    new URL(`${daemon.url}/mcp${tools === "usual" ? "" : `/${tools}`}`),
    { requestInit: { headers: { authorization: `Bearer ${key}` } } },
  ] as const;
  const env = { PATH: daemon.env.PATH ?? "", ROOMD_URL: daemon.url, ROOMD_API_KEY: key };
  const stdio = {
    command: BINARY,
    args: tools === "usual" ? ["mcp"] : ["mcp", "--tools", tools],
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
    call: async (...args) => {
      const { structuredContent, content } = await result(...args);
      return withOutput(structuredContent, String(content[0]?.text));
    },
    close: () => client.close(),
  };
}

/** The text after the output: a call that continues, on a separate line. */
const NOTE = /^(?:\n?\[(?:more output|not finished): continue with .*\])?$/;

/** The streams of an answer's text, by the counts of the structured content. Throws if the text is longer or shorter than the counts. */
function streamsOf(body: Buffer, counts: { stdout: number; stderr: number }): Json {
  let at = 0;
  const isNext = (text: string) => body.subarray(at).toString().startsWith(text);
  const take = (name: "stdout" | "stderr"): Json => {
    const label = `[${name} is not UTF-8; base64:]\n`;
    const isText = !isNext(label);
    if (!isText) at += label.length;
    const from = at;
    at += isText ? counts[name] : 4 * Math.ceil(counts[name] / 3);
    const part = body.subarray(from, at);
    return isText
      ? { [name]: part.toString(), [`${name}_b64`]: part.toString("base64") }
      : { [name]: null, [`${name}_b64`]: part.toString() };
  };
  const stdout = take("stdout");
  if (counts.stderr > 0) {
    for (const between of isNext("\n") ? ["\n", "[stderr]\n"] : ["[stderr]\n"]) {
      if (!isNext(between)) throw new Error(`standard error is not where stdout ends: ${body.subarray(at)}`);
      at += between.length;
    }
  }
  const streams = { ...stdout, ...take("stderr") };
  const after = body.subarray(at).toString();
  if (!NOTE.test(after)) throw new Error(`more output than is counted: ${after}`);
  return streams;
}

/** Output as the text of an answer shows it; if a part was left out, the text itself as standard output. */
function withOutput(structured: Json, text: string): Json {
  const { ok, result } = structured;
  if (!ok || text === JSON.stringify(structured)) return structured;
  if (result.state !== undefined && "exit_code" in result) {
    const [, ...lines] = text.replace(/^\[took .*\]\n/, "").split("\n");
    const body = lines.join("\n");
    const counts = result.shown_bytes ?? { stdout: result.stdout_bytes, stderr: result.stderr_bytes };
    const streams = result.left_out_bytes ? { stdout: body } : streamsOf(Buffer.from(body), counts);
    return { ...structured, result: { ...result, ...streams } };
  }
  const content = text.replace(/\n\[bytes [\d,]+ to .*; read on with .*\]$/, "");
  return {
    ...structured,
    result: { ...result, ...(result.encoding === "base64" ? { content_b64: content } : { content }) },
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
