/**
 * Warm-up of the MCP SDK: requests of both generations of the protocol, answered at the start. The SDK builds and compiles its schemas at
 * their first use, which takes 20 to 40 ms of the event loop.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  LATEST_PROTOCOL_VERSION,
  PROTOCOL_VERSION_META_KEY,
  Server,
} from "@modelcontextprotocol/server";

const SESSIONLESS_VERSION = "2026-07-28";
const CLIENT = { name: "roomd", version: "1" };
const TOOL = { name: "none", arguments: {} };

interface Exchange {
  method: string;
  params: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** A request as clients of the newest revision send it. */
const sessionless = (method: string, params: Record<string, unknown> = {}): Exchange => ({
  method,
  params: {
    ...params,
    _meta: {
      [PROTOCOL_VERSION_META_KEY]: SESSIONLESS_VERSION,
      [CLIENT_INFO_META_KEY]: CLIENT,
      [CLIENT_CAPABILITIES_META_KEY]: {},
    },
  },
  headers: {
    "mcp-protocol-version": SESSIONLESS_VERSION,
    "mcp-method": method,
    ...("name" in params ? { "mcp-name": String(params.name) } : {}),
  },
});

const EXCHANGES: readonly Exchange[] = [
  {
    method: "initialize",
    params: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo: CLIENT },
  },
  { method: "tools/list", params: {} },
  { method: "tools/call", params: TOOL },
  sessionless("server/discover"),
  sessionless("tools/list"),
  sessionless("tools/call", TOOL),
];

/** Returns the status of each response. */
export async function warmUp(): Promise<number[]> {
  const handler = createMcpHandler(() => {
    const server = new Server(CLIENT, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [] }));
    server.setRequestHandler("tools/call", () => ({ content: [] }));
    return server;
  });
  const statuses: number[] = [];
  try {
    for (const [id, { method, params, headers }] of EXCHANGES.entries()) {
      const message = { jsonrpc: "2.0", id, method, params };
      const request = new Request("http://localhost/mcp", {
        method: "POST",
        headers: { accept: "application/json, text/event-stream", "content-type": "application/json", ...headers },
        body: JSON.stringify(message),
      });
      const response = await handler.fetch(request, { parsedBody: message });
      await response.text();
      statuses.push(response.status);
    }
  } finally {
    await handler.close();
  }
  return statuses;
}
