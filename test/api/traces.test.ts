/**
 * Traces, to a real collector: the trace that a call continues, on any transport; trace context in messages and their readers' calls;
 * exported spans and their receivers; the cost of a collector that is down or refuses; and that without one nothing is exported or started.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as NewClient, StreamableHTTPClientTransport as NewHttp } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CollectedSpan, Collector, treeOf } from "../fixtures/collector.ts";
import { parseMetrics } from "../harness/clients/exposition.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";

const hex = (bytes: number) => randomBytes(bytes).toString("hex");

interface Outer {
  trace_id: string;
  span_id: string;
  headers: { traceparent: string };
}

/** A span context in an external trace. */
function outer(flags = "01"): Outer {
  const [trace_id, span_id] = [hex(16), hex(8)];
  return { trace_id, span_id, headers: { traceparent: `00-${trace_id}-${span_id}-${flags}` } };
}

const named = (name: string) => (spans: CollectedSpan[]) => spans.some((span) => span.name === name);

async function sent(daemon: TestDaemon, headers: Record<string, string>, more: Json = {}): Promise<Json> {
  const body = { source: "a", destination: "a", payload: "x", ...more };
  const { body: receipt } = await daemon.api("POST", "/v1/rooms/r/messages", body, headers);
  return await daemon.ok("GET", `/v1/rooms/r/messages/${receipt.message_id}`);
}

/** The traces that the newest records of an event name, the newest first. */
async function tracesOf(daemon: TestDaemon, event: string): Promise<(string | undefined)[]> {
  const { items } = await daemon.ok("GET", `/v1/rooms/r/audit?event=${event}`);
  return items.map(({ details }: Json) => details.trace_id);
}

describe("without a collector", () => {
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await TestDaemon.start();
    await daemon.room("r");
  });
  afterAll(() => daemon.stop());

  test("a call's trace is in its record, and is passed on unchanged with its message", async () => {
    const { trace_id, headers } = outer();
    const message = await sent(daemon, { ...headers, tracestate: "vendor=1" });
    expect(message.headers).toEqual(headers);
    expect((await tracesOf(daemon, "message.sent"))[0]).toBe(trace_id);
    const { items } = await daemon.ok("GET", "/v1/rooms/r/timeline?types=message&limit=1");
    expect(items[0].trace_id).toBe(trace_id);
    const ofTrace = await daemon.ok("GET", `/v1/orgs/self/audit?trace_id=${trace_id}`);
    expect(ofTrace.items.map(({ event }: Json) => event)).toEqual(["message.sent"]);
    expect((await daemon.ok("GET", "/v1/rooms/r/audit?trace_id=none")).items).toEqual([]);
  });

  test("a call without a valid trace has none, and starts none", async () => {
    const bad = [
      "",
      "00",
      `00-${hex(16)}-${hex(8)}`,
      `00-${"0".repeat(32)}-${hex(8)}-01`,
      `00-${hex(16)}-${"0".repeat(16)}-01`,
      `ff-${hex(16)}-${hex(8)}-01`,
      `00-${hex(16).toUpperCase().replace(/^./, "A")}-${hex(8)}-01`,
      `00-${hex(16)}-${hex(8)}-01-more`,
      `00-${hex(16)}-${hex(8)}-01, 00-${hex(16)}-${hex(8)}-01`,
      `01-${hex(16)}-${hex(8)}-01-${"x".repeat(300)}`,
    ];
    for (const traceparent of [undefined, ...bad]) {
      const message = await sent(daemon, traceparent === undefined ? {} : { traceparent });
      expect({ traceparent, headers: message.headers }).toEqual({ traceparent, headers: {} });
    }
    expect(await tracesOf(daemon, "message.sent")).not.toContain(expect.any(String));
    // Of a later version the fields that are known count.
    const { trace_id, span_id } = outer();
    const later = await sent(daemon, { traceparent: `01-${trace_id}-${span_id}-03-more` });
    expect(later.headers).toEqual({ traceparent: `00-${trace_id}-${span_id}-01` });
  });

  test("a message with its own trace context overrides the call's; its reply and ack continue it", async () => {
    const own = outer("00");
    const message = await sent(daemon, {}, { headers: { ...own.headers, step: "1" } });
    expect(message.headers).toEqual({ ...own.headers, step: "1" });
    await daemon.ok("POST", `/v1/rooms/r/messages/${message.message_id}/reply`, { source: "a", payload: "y" });
    await daemon.ok("POST", `/v1/rooms/r/messages/${message.message_id}/ack`, { agent_id: "a" });
    for (const event of ["message.sent", "message.replied", "message.acked"])
      expect((await tracesOf(daemon, event))[0]).toBe(own.trace_id);
    // The sender's own headers are kept, regardless of the trace that the call continues.
    const call = outer();
    const both = await sent(daemon, call.headers, { headers: own.headers });
    expect(both.headers).toEqual(own.headers);
    expect((await tracesOf(daemon, "message.sent"))[0]).toBe(call.trace_id);
    const odd = await sent(daemon, call.headers, { headers: { traceparent: "mine" } });
    expect(odd.headers).toEqual({ traceparent: "mine" });
  });

  test("a reply from another trace continues its message's trace, unless that is unsampled", async () => {
    const [request, own, unwanted] = [outer(), outer(), outer("00")];
    const reply = async (to: Outer) => {
      const message = await sent(daemon, to.headers);
      const path = `/v1/rooms/r/messages/${message.message_id}/reply`;
      await daemon.api("POST", path, { source: "a", payload: "y" }, own.headers);
      return (await tracesOf(daemon, "message.replied"))[0];
    };
    expect([await reply(request), await reply(unwanted)]).toEqual([request.trace_id, own.trace_id]);
  });

  test("headers of maximal size have room for the trace context, and can be sent on", async () => {
    const long = { note: "x".repeat(4080) };
    const message = await sent(daemon, outer().headers, { headers: long });
    expect(message.headers).toMatchObject(long);
    const again = await sent(daemon, {}, { headers: message.headers });
    expect(again.headers).toEqual(message.headers);
    const hidden = { ...long, traceparent: "x".repeat(4000) };
    await daemon.problem("POST", "/v1/rooms/r/messages", { source: "a", topic: "t", payload: 1, headers: hidden });
  });

  test("the same message with another trace context is the same message", async () => {
    const first = outer();
    const given = { message_id: "once" };
    await sent(daemon, first.headers, given);
    const again = await sent(daemon, outer().headers, given);
    expect(again.headers).toEqual(first.headers);
  });
});

describe("with a collector", () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-traces-"));
  let collector: Collector;
  let daemon: TestDaemon;
  beforeAll(async () => {
    collector = await new Collector().listen();
    writeFileSync(join(home, "headers"), "X-Team: blue\nAuthorization: Bearer collectors-own\n");
    daemon = await TestDaemon.start({
      env: {
        ROOMD_OTEL_ENDPOINT: collector.url,
        ROOMD_OTEL_HEADERS_FILE: join(home, "headers"),
        ROOMD_OTEL_TRACE_URL: "https://traces.example.com/t/{trace_id}",
      },
    });
    await daemon.room("r");
  });
  afterAll(async () => {
    await daemon.stop();
    await collector.stop();
    rmSync(home, { recursive: true });
  });

  test("a message is read, answered and acknowledged in its sender's trace", async () => {
    const { trace_id, span_id, headers } = outer();
    const message = await sent(daemon, headers, { destination: "a", kind: "request" });
    // However many read it, it is read for the first time once.
    await Promise.all(Array.from({ length: 4 }, () => daemon.ok("GET", "/v1/rooms/r/messages?agent_id=a")));
    await daemon.ok("POST", `/v1/rooms/r/messages/${message.message_id}/reply`, { source: "a", payload: "y" });
    const spans = await collector.trace(trace_id, named("message_reply"));
    expect(treeOf(spans, span_id)).toEqual(["agent_send", "  message", "  message_reply"]);
    const [send, read] = ["agent_send", "message"].map((name) => spans.find((span) => span.name === name));
    expect(message.headers.traceparent).toBe(`00-${trace_id}-${send?.span_id}-01`);
    expect([send?.kind, read?.kind]).toEqual([2, 5]);
    expect(send?.attributes).toMatchObject({
      "roomd.door": "rest",
      "roomd.room_id": "r",
      "roomd.agent_id": "a",
      "roomd.org_id": daemon.orgId,
      "roomd.message_id": message.message_id,
      "http.response.status_code": 202,
    });
    // No message content is in it.
    expect(JSON.stringify(spans)).not.toContain('"x"');
    for (const span of spans) expect(span.ended_ms).toBeGreaterThanOrEqual(span.began_ms);
  });

  test("the exporter sends the configured headers and its resource attributes", () => {
    const [{ path, headers, resource }] = collector.requests as [Collector["requests"][number]];
    expect(path).toBe("/v1/traces");
    expect(headers).toMatchObject({ "x-team": "blue", authorization: "Bearer collectors-own" });
    expect(resource).toMatchObject({ "service.name": "roomd", "service.instance.id": expect.stringMatching(/^host-/) });
  });

  test("a refused call has its error code; a read has a span only within a trace", async () => {
    const { trace_id, span_id, headers } = outer();
    await daemon.api("GET", "/v1/rooms/none", undefined, headers);
    await daemon.api("PUT", "/v1/rooms/r/drive/files/notes.txt", "text", headers);
    const spans = await collector.trace(trace_id, (all) => all.length === 2);
    expect(treeOf(spans, span_id)).toEqual(["room_get", "file_put"]);
    // A refusal is the caller's fault: the span has its error code, and is not marked as failed.
    expect(spans.map(({ problem, attributes }) => [problem, attributes["error.type"]])).toEqual([
      [null, "room_not_found"],
      [null, undefined],
    ]);
    expect(spans[1]?.attributes["roomd.path"]).toBe("/notes.txt");
  });

  test("a barrier's arrivals are linked to each other, each in its own trace", async () => {
    const [one, other] = [outer(), outer()];
    const arrive = (agent_id: string, headers: Record<string, string>) =>
      daemon.api(
        "POST",
        "/v1/rooms/r/barriers",
        { barrier_id: "b", agent_id, parties: 2, timeout_ms: 20_000 },
        headers,
      );
    await Promise.all([arrive("a", one.headers), arrive("b", other.headers)]);
    const [ofOne] = await collector.trace(one.trace_id, named("barrier_arrive"));
    const [ofOther] = await collector.trace(other.trace_id, named("barrier_arrive"));
    expect([ofOne?.links, ofOther?.links]).toEqual([[ofOther?.span_id], [ofOne?.span_id]]);
  });

  test("MCP: the trace context in _meta is continued by all calls of the tool", async () => {
    const { trace_id, span_id, headers } = outer();
    const client = new NewClient({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
    const init = { headers: { authorization: `Bearer ${daemon.apiKey}` } };
    await client.connect(new NewHttp(new URL(`${daemon.url}/mcp`), { requestInit: init }));
    const result = await client.callTool({
      name: "agent_send",
      arguments: { room_id: "r", source: "a", destination: "a", payload: "by mcp" },
      _meta: headers,
    });
    await client.close();
    expect(result.isError ?? false).toBe(false);
    const spans = await collector.trace(trace_id, named("tools/call agent_send"));
    // A client's first call that changes something looks first.
    expect(treeOf(spans, span_id)).toEqual(["tools/call agent_send", "  health", "  usage", "  agent_send"]);
    expect((await tracesOf(daemon, "message.sent"))[0]).toBe(trace_id);
  });

  test("an unsampled trace is propagated, and not exported", async () => {
    const unwanted = outer("00");
    const message = await sent(daemon, unwanted.headers);
    expect(message.headers).toEqual(unwanted.headers);
    const sampled = outer();
    await sent(daemon, sampled.headers);
    await collector.trace(sampled.trace_id, named("agent_send"));
    expect(collector.spans.filter(({ trace_id }) => trace_id === unwanted.trace_id)).toEqual([]);
  });

  test("a call without a trace starts one, unless it is a read or unauthenticated", async () => {
    const message = await sent(daemon, {});
    const [, trace_id = ""] = /^00-([\da-f]{32})-/.exec(message.headers.traceparent) ?? [];
    const spans = await collector.trace(trace_id, named("agent_send"));
    expect(spans[0]?.parent_id).toBe(null);
    expect((await tracesOf(daemon, "message.sent"))[0]).toBe(trace_id);
    const stranger = outer();
    const url = `${daemon.url}/v1/rooms`;
    await fetch(url, { method: "POST", headers: stranger.headers, body: "{}" });
    await daemon.ok("GET", "/v1/rooms/r");
    const last = outer();
    await daemon.api("GET", "/v1/rooms/r", undefined, last.headers);
    await collector.trace(last.trace_id, named("room_get"));
    expect(collector.spans.filter((span) => span.trace_id === stranger.trace_id)).toEqual([]);
    expect(collector.spans.filter(({ name }) => name === "room_get").map((span) => span.trace_id)).toEqual([
      expect.any(String),
      last.trace_id,
    ]);
  });

  test("a replayed answer and a call that fails validation start none", async () => {
    const before = collector.spans.length;
    const body = { source: "a", topic: "t", payload: 1 };
    const once = () => daemon.api("POST", "/v1/rooms/r/messages", body, { "Idempotency-Key": "once" });
    for (let n = 0; n < 3; n++) await once();
    await daemon.api("POST", "/v1/rooms/r/messages", { ...body, payload_b64: "?" });
    const last = outer();
    await sent(daemon, last.headers);
    await collector.trace(last.trace_id, named("agent_send"));
    expect(collector.spans.slice(before).map(({ name, trace_id }) => [name, trace_id === last.trace_id])).toEqual([
      ["agent_send", false],
      ["agent_send", true],
    ]);
  });

  test("the timeline has the trace ID and the URL of the trace viewer", async () => {
    const { trace_id, headers } = outer();
    await sent(daemon, headers);
    const { items, trace_url } = await daemon.ok("GET", "/v1/rooms/r/timeline?types=message&limit=1");
    expect([items[0].trace_id, trace_url]).toEqual([trace_id, "https://traces.example.com/t/{trace_id}"]);
  });

  test("a busy collector is retried, and nothing is lost", async () => {
    collector.answers.push({ status: 503, headers: { "Retry-After": "1" } }, { status: 429 });
    const { trace_id, headers } = outer();
    await sent(daemon, headers);
    await collector.trace(trace_id, named("agent_send"));
    expect(collector.answers).toEqual([]);
  });

  test("spans that are rejected or redirected are dropped and counted; the next are accepted", async () => {
    const dropped = async () => {
      const { body } = await daemon.api("GET", "/metrics");
      const samples = parseMetrics(body);
      return Number(
        samples.find(({ name, labels }) => name === "roomd_spans_total" && labels.outcome === "dropped")?.value,
      );
    };
    const before = await dropped();
    const other = await new Collector().listen();
    for (const answer of [{ status: 400 }, { status: 307, headers: { Location: `${other.url}/v1/traces` } }]) {
      const count = await dropped();
      collector.answers.push(answer);
      await sent(daemon, outer().headers);
      await until("the dropped span is counted", async () => (await dropped()) > count);
    }
    expect(other.requests).toEqual([]);
    await other.stop();
    expect(await dropped()).toBe(before + 2);
    // A span that the collector cannot parse does not cause the others of its batch to be dropped.
    const halved = Array.from({ length: 4 }, outer);
    collector.answers.push({ status: 400 });
    await Promise.all(halved.map(({ headers }) => sent(daemon, headers)));
    for (const { trace_id } of halved) await collector.trace(trace_id, named("agent_send"));
    const some = await dropped();
    collector.answers.push({ status: 200, body: '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}' });
    await sent(daemon, outer().headers);
    await until("the dropped span is counted", async () => (await dropped()) === some + 1);
    const { trace_id, headers } = outer();
    await sent(daemon, headers);
    await collector.trace(trace_id, named("agent_send"));
  });

  test("an unavailable collector is retried; calls are answered, and the daemon stops without it", async () => {
    const { port } = collector;
    await collector.stop();
    const { trace_id, headers } = outer();
    await sent(daemon, headers);
    collector = await new Collector().listen(port);
    await collector.trace(trace_id, named("agent_send"));
    const last = outer();
    await sent(daemon, last.headers);
    await daemon.restart("SIGTERM");
    await collector.trace(last.trace_id, named("agent_send"));
    await collector.stop();
    await sent(daemon, outer().headers);
    await daemon.restart("SIGTERM");
    collector = await new Collector().listen(port);
  });
});

test("with sampling, all work within a trace follows its decision", async () => {
  const collector = await new Collector().listen();
  const env = { ROOMD_OTEL_ENDPOINT: collector.url, ROOMD_OTEL_SAMPLE_PERCENT: "50" };
  await using daemon = await TestDaemon.start({ env });
  await daemon.room("r");
  const message = {
    jsonrpc: "2.0",
    method: "tools/call",
    params: { name: "agent_send", arguments: { room_id: "r", source: "a", topic: "t", payload: "by mcp" } },
  };
  for (let id = 1; id <= 64; id++) {
    const { status } = await fetch(`${daemon.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${daemon.apiKey}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ ...message, id }),
    });
    expect(status).toBe(200);
  }
  const last = outer();
  await sent(daemon, last.headers, { topic: "t", destination: undefined });
  await collector.trace(last.trace_id, named("agent_send"));
  const roots = collector.spans.filter(({ name, parent_id }) => parent_id === null && name !== "room_create");
  expect(new Set(roots.map(({ name }) => name))).toEqual(new Set(["tools/call agent_send"]));
  // By chance fewer or more once in a million runs.
  expect(roots.length).toBeGreaterThan(12);
  expect(roots.length).toBeLessThan(52);
  const sends = collector.spans.filter(({ name, trace_id }) => name === "agent_send" && trace_id !== last.trace_id);
  expect(sends.length).toBe(roots.length);
  expect(roots[0]?.attributes["roomd.org_id"]).toBe(daemon.orgId);
  await collector.stop();
});

test("rate-limited calls are not exported, through any door", async () => {
  const collector = await new Collector().listen();
  const env = {
    ROOMD_OTEL_ENDPOINT: collector.url,
    ROOMD_LIMITS_REQUESTS_PER_SECOND: "5",
    ROOMD_LIMITS_REQUESTS_AT_ONCE: "10",
  };
  await using daemon = await TestDaemon.start({ env });
  const { trace_id, headers } = outer();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "room_list", arguments: {} } };
  const requests = Array.from({ length: 40 }, async (_, n) => {
    const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const init = { headers: { authorization: `Bearer ${daemon.apiKey}`, ...json, ...headers } };
    if (n % 2 === 0) return (await fetch(`${daemon.url}/v1/rooms`, init)).text();
    return (
      await fetch(`${daemon.url}/mcp`, { ...init, method: "POST", body: JSON.stringify({ ...call, id: n }) })
    ).text();
  });
  const answers = await Promise.all(requests);
  expect(answers.filter((text) => text.includes("rate_limited")).length).toBeGreaterThan(10);
  const spans = await collector.trace(trace_id, named("room_list"));
  expect(spans.map(({ attributes }) => attributes["error.type"])).not.toContain("rate_limited");
  await collector.stop();
});
