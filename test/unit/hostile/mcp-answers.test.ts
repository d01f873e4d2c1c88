/** Operations with replies of many megabytes, called by MCP, and the longest turn of the event loop until the short answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeAside } from "../../../daemon/compose/aside.ts";
import type { Bound, Caller } from "../../../daemon/core/call/operation.ts";
import { NO_TRACES } from "../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { makeMcpDoor } from "../../../daemon/edge/mcp/door.ts";
import { MAX_LIMITED_RESULT, MAX_RESULT } from "../../../daemon/edge/mcp/shorten.ts";
import type { Pipeline, PipelineReply, PipelineRequest } from "../../../daemon/edge/pipeline/pipeline.ts";
import type { AsidePool } from "../../../daemon/host/aside/pool.ts";
import { operations } from "../../../shared/api/operations.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Json } from "../../harness/daemon.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const MAX_MS = 10;
const log = makeLog("error", () => {});
let aside: AsidePool;
beforeAll(async () => {
  aside = makeAside(log);
  await aside.started();
});
afterAll(() => aside?.close());

const bound = new Map(
  Object.values(operations).map((operation) => [operation.name, { operation } as unknown as Bound]),
);

const REPLY = { kind: "done", status: 200, location: null, replayed: false, rate: null } as const;

/** Calls a tool; its operation replies with these bytes for a limit. */
async function callTool(tool: string, args: object, bytesOf: (limit: number) => Uint8Array): Promise<Json> {
  const run = async ({ operation }: Bound, request: PipelineRequest): Promise<PipelineReply> => {
    const { fields } = await request.body(Number.MAX_SAFE_INTEGER);
    // A session's first call also checks the service.
    if (operation.name !== tool) return { ...REPLY, done: { outcome: "ok", body: {} } };
    const bytes = bytesOf(Number((fields as Json).limit ?? 100));
    return { ...REPLY, done: { outcome: "ok", json: { bytes } } };
  };
  const road = { run } as unknown as Pipeline;
  const door = makeMcpDoor({ bound, road, aside, traces: NO_TRACES, log, others: null, record: () => {} });
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: args } };
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(message) });
  const caller = { key_id: "kid_1", org_id: "org_1", name: "test", agent_id: null } as unknown as Caller;
  const visit = { caller, first_key_id: "kid_01KB3ZJ0C8V5Y6W7X89ABCDEFG" as KeyId, trace: null, authorization: null };
  const more = { ip: null, request_id: "req_1", bytes: 100, tool_set: "all" } as const;
  const response = await door.answer({ request, message, ...visit, ...more });
  const text = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text).result;
}

const WARM_UPS = 3;

/** The result, and the longest turn of a call after some others. */
async function measured(tool: string, args: object, reply: (limit: number) => object): Promise<[Json, number]> {
  const { limit = 100 } = args as { limit?: number };
  const encode = (most: number) => new TextEncoder().encode(JSON.stringify(reply(most)));
  for (let time = 0; time < WARM_UPS; time++) await callTool(tool, args, encode);
  // Made before the measured turns.
  const whole = encode(limit);
  Bun.gc(true);
  let answer: Json;
  const longest = await longestTurn(async () => {
    answer = await callTool(tool, args, (most) => (most === limit ? whole : encode(most)));
  });
  console.log(`${tool}: longest turn ${longest.toFixed(1)} ms`);
  expect(answer.structuredContent).toMatchObject({ ok: true });
  return [answer.structuredContent.result, longest];
}

const messages = (count: number) => ({
  items: Array.from({ length: count }, (_, at) => ({ seq: at + 1, source: "a", payload: `"${"x".repeat(60_000)}"` })),
  next_cursor: `after ${count}`,
  next_after: count,
});

describe("agent_wait", () => {
  test("of 6 MB of messages returns one, and where to continue", async () => {
    const [result, longest] = await measured("agent_wait", { room_id: "r", agent_id: "a" }, messages);
    expect(result.items).toHaveLength(1);
    expect(result).toMatchObject({ next_after: 1, next: { arguments: { after: 1 } } });
    expect(JSON.stringify(result).length).toBeLessThan(MAX_RESULT + 2_000);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  });

  test("with a limit returns as many as fit, and where to continue", async () => {
    const [result, longest] = await measured("agent_wait", { room_id: "r", agent_id: "a", limit: 1_000 }, messages);
    expect(result.items.length).toBeGreaterThan(1);
    // The cursor of the whole page would skip the messages that were left out.
    expect([result.next_after, result.next_cursor ?? null]).toEqual([result.items.length, null]);
    expect(JSON.stringify(result).length).toBeLessThan(MAX_LIMITED_RESULT + 2_000);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  });
});

test("a page of records is read again with a limit that fits", async () => {
  const records = (limit: number) => ({
    items: Array.from({ length: limit }, (_, at) => ({ seq: at, event: "message.sent", details: "x".repeat(900) })),
    next_cursor: `after ${limit}`,
  });
  const [result, longest] = await measured("audit_list", { room_id: "r", raw: true, limit: 1_000 }, records);
  expect(result.items.length).toBeGreaterThan(100);
  expect(result.next_cursor).toBe(`after ${result.items.length}`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

test("a page with long items at its start is read again until it fits", async () => {
  const details = (at: number) => "x".repeat(at < 10 ? 60_000 : 100);
  const records = (limit: number) => ({
    items: Array.from({ length: limit }, (_, at) => ({ seq: at, event: "message.sent", details: details(at) })),
    next_cursor: `after ${limit}`,
  });
  const [result] = await measured("audit_list", { room_id: "r", raw: true, limit: 100 }, records);
  expect(result.next_cursor).toBe(`after ${result.items.length}`);
  expect(JSON.stringify(result).length).toBeLessThan(MAX_LIMITED_RESULT + 2_000);
});
