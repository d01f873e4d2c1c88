/**
 * Benchmark of MCP: the overhead of a tool call over the same REST call, with messages of both protocol versions and with the official
 * client, which also validates results against their schemas.
 */

import { connectMcp, type McpClient } from "../harness/clients/mcp-client.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { takeTurns } from "./load/sampling.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 500;
const ROOM = "bench";
const FILE = { path: "/file", content: "x".repeat(1024) };
const MAX_ADDED_MS = 3;

export async function benchMcp({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({});
  await daemon.room(ROOM);
  const client = await connectMcp(daemon);
  try {
    const { read_rest, read_2026, read_2025, read_client, write_rest, write_2026 } = await takeTurns(count, {
      read_rest: () => daemon.ok("GET", `/v1/rooms/${ROOM}`),
      read_2026: () => callTool(daemon, "2026", "room_get", { room_id: ROOM }),
      read_2025: () => callTool(daemon, "2025", "room_get", { room_id: ROOM }),
      read_client: () => client.call("room_get", { room_id: ROOM }),
      write_rest: () => daemon.ok("POST", `/v1/rooms/${ROOM}/drive/write`, FILE),
      write_2026: () => callTool(daemon, "2026", "fs_write", { room_id: ROOM, ...FILE }),
    });
    const added = (over: number[], under: number[]) => over.map((ms, round) => ms - (under[round] ?? 0));
    const limit = { of: "p50", most: MAX_ADDED_MS } as const;
    report.add("room_get", "ms", read_rest);
    report.add("room_get_tool", "ms", read_2026, "room_get");
    report.add("room_get_added", "ms", added(read_2026, read_rest), undefined, limit);
    report.add("room_get_tool_2025", "ms", read_2025, "room_get");
    report.add("room_get_added_2025", "ms", added(read_2025, read_rest), undefined, limit);
    report.add("room_get_by_client", "ms", read_client, "room_get");
    report.add("fs_write", "ms", write_rest);
    report.add("fs_write_tool", "ms", write_2026, "fs_write");
    report.add("fs_write_added", "ms", added(write_2026, write_rest), undefined, limit);
    await reportBytes(report, daemon);
  } finally {
    await client.close();
  }
}

/** Cost of lists and results for a model: bytes, and tokens at four bytes each. */
async function reportBytes(report: Bench["report"], daemon: TestDaemon): Promise<void> {
  const add = (name: string, value: unknown) => {
    const bytes = Buffer.byteLength(JSON.stringify(value));
    report.add(`${name}_bytes`, "bytes", [bytes]);
    report.add(`${name}_tokens`, "tokens", [Math.ceil(bytes / 4)]);
  };
  for (const tools of ["usual", "small", "all"] as const) {
    const client = await connectMcp(daemon, { tools });
    add(`list_${tools}`, await client.listTools());
    await client.close();
  }
  const client = await connectMcp(daemon, { name: "bytes" });
  add("room_create_first", await client.result("room_create", {}));
  add("fs_read_1_3_mb", await readOf(client, "x".repeat(1_300_000)));
  add("audit_list", await client.result("audit_list", { room_id: ROOM }));
  add("refusal", await client.result("sandbox_exec", { room_id: ROOM, cmd: "ls" }));
  add("no_such_tool", await client.result("file_read", { path: "/a" }));
  await client.close();
}

async function readOf(client: McpClient, content: string) {
  await client.call("fs_write", { room_id: ROOM, path: "/long", content });
  return await client.result("fs_read", { room_id: ROOM, path: "/long" });
}

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** As a client sends it, without a client's own work. */
async function callTool(daemon: TestDaemon, generation: "2026" | "2025", name: string, args: object): Promise<void> {
  const isNew = generation === "2026";
  const params = { name, arguments: args, ...(isNew ? { _meta: META } : {}) };
  const response = await fetch(`${daemon.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${daemon.apiKey}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": isNew ? "2026-07-28" : "2025-11-25",
      ...(isNew ? { "mcp-method": "tools/call", "mcp-name": name } : {}),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const text = await response.text();
  if (!text.includes('"structuredContent":{"ok":true')) throw new Error(`${name}: ${response.status} ${text}`);
}
