/**
 * `roomd mcp`: MCP over standard input and output, for clients that start their servers. Forwards each message to the service's /mcp
 * unchanged, and the answers back; the tools are the service's alone.
 */
import { randomUUID } from "node:crypto";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  INTERNAL_ERROR,
  isInitializeRequest,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId,
} from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import type { Problem } from "../../../shared/api/errors.ts";
import { TOOL_SETS, type ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import { meGet } from "../../../shared/api/service.ts";
import { call } from "../kit/client.ts";
import { choice, command } from "../kit/command.ts";
import { type Connection, findConnection } from "../kit/connection.ts";
import { fetchFrom } from "../kit/web.ts";

/** Large enough for a message that contains a file of 16 MiB. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024;

export function mcpCommand(): Command {
  const about = {
    summary: "serve MCP on standard input and output",
    notes: [
      "For MCP clients that start a command. Clients that speak Streamable HTTP use ROOMD_URL/mcp with the key as Bearer token.",
      "It ends when its standard input ends. Problems with the service or the key are printed on standard error.",
    ],
    examples: ["ROOMD_URL=http://127.0.0.1:8080 ROOMD_API_KEY=key-… roomd mcp", "roomd mcp --tools small"],
  };
  return command("mcp", about)
    .addOption(
      choice(
        "--tools <which>",
        "which tools it serves; small: nine for one sandbox; all: those for screens, browsers and templates too",
        Object.keys(TOOL_SETS),
      ),
    )
    .action(async ({ tools = "usual" }: { tools?: ToolSet }) => {
      await call(meGet, {});
      await relay(await findConnection(), TOOL_SETS[tools].path);
    });
}

/** Relays messages between standard input and output and the service. Resolves when the client has closed its end. */
async function relay({ url, ca }: Connection, path: string): Promise<void> {
  const client = new StdioServerTransport(undefined, undefined, { maxBufferSize: MAX_MESSAGE_BYTES });
  const service = new StreamableHTTPClientTransport(new URL(`${url}${path}`), {
    // The service distinguishes clients of one key by it, if the protocol has no sessions.
    requestInit: { headers: { "Mcp-Session-Id": randomUUID() } },
    fetch: async (to, init) => {
      // The token of a signed-in user changes every hour.
      const headers = new Headers(init?.headers);
      headers.set("Authorization", `Bearer ${(await findConnection()).key}`);
      return await fetchFrom(ca, to, { ...init, headers });
    },
  });
  const underWay = new Map<RequestId, AbortController>();
  let opening: RequestId | null = null;

  const pass = async (message: JSONRPCMessage) => {
    if (isCancelled(message)) return underWay.get(message.params.requestId)?.abort();
    if (!isJSONRPCRequest(message)) return await service.send(message);
    const { id } = message;
    const cancellation = new AbortController();
    underWay.set(id, cancellation);
    if (isInitializeRequest(message)) opening = id;
    await service.send(message, { requestSignal: cancellation.signal }).catch(async (error: unknown) => {
      underWay.delete(id);
      if (cancellation.signal.aborted) return;
      await client.send({ jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: sentenceOf(error) } });
    });
  };

  const closed = Promise.withResolvers<void>();
  client.onclose = closed.resolve;
  client.onmessage = (message) => void pass(message).catch(say);
  client.onerror = say;
  service.onmessage = (message) => {
    if ("id" in message && message.id !== undefined) underWay.delete(message.id);
    if (isJSONRPCResultResponse(message) && message.id === opening) {
      service.setProtocolVersion(String(message.result.protocolVersion));
    }
    client.send(message).catch(say);
  };
  await service.start();
  await client.start();
  await closed.promise;
  await service.close();
}

interface Cancelled {
  method: "notifications/cancelled";
  params: { requestId: RequestId };
}

function isCancelled(message: JSONRPCMessage): message is JSONRPCMessage & Cancelled {
  return "method" in message && message.method === "notifications/cancelled" && message.params !== undefined;
}

/** The service's refusal, else the transport error. */
function sentenceOf(error: unknown): string {
  const { text } = Object((error as { data?: unknown }).data) as { text?: unknown };
  try {
    const { detail, hint } = JSON.parse(String(text)) as Problem;
    return hint ? `${detail} ${hint}` : detail;
  } catch {
    return error instanceof Error ? error.message : String(error);
  }
}

function say(error: unknown): void {
  process.stderr.write(`roomd mcp: ${sentenceOf(error)}\n`);
}
