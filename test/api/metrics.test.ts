/** Prometheus metrics: correct values, the exposition format (parsed strictly), and access control. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LOOP_KINDS } from "../../daemon/core/loop/figures.ts";
import { CHECK_IDS } from "../../daemon/domain/service/checks.ts";
import { makeIsFromHost } from "../../daemon/edge/http/from-host.ts";
import { SOURCES } from "../../shared/api/audit.ts";
import { SCOPES } from "../../shared/api/contract.ts";
import { ERRORS } from "../../shared/api/errors.ts";
import { HOST_STATES } from "../../shared/api/hosts.ts";
import { operations } from "../../shared/api/operations.ts";
import { EXIT_CAUSES, SANDBOX_STATES, START_MODES, WAKE_REASONS } from "../../shared/api/sandboxes.ts";
import { parseMetrics as parse, type Sample } from "../harness/clients/exposition.ts";
import { type Answer, TestDaemon } from "../harness/daemon.ts";
import { bare, bearer, makeKey } from "./calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

async function look(): Promise<(name: string, labels?: Record<string, string>) => number> {
  const { status, headers, body } = await bare(daemon, "GET", "/metrics");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const samples = parse(body);
  const isOf = (sample: Sample, expected: Record<string, string>) =>
    Object.entries(expected).every(([key, text]) => sample.labels[key] === text);
  return (name, labels = {}) =>
    samples.filter((each) => each.name === name && isOf(each, labels)).reduce((sum, { value }) => sum + value, 0);
}

describe("the metrics", () => {
  test("change with the work that is done", async () => {
    const before = await look();
    await daemon.room("measured");
    expect((await daemon.api("GET", "/v1/rooms/none")).status).toBe(404);
    expect((await bare(daemon, "GET", "/v1/rooms")).status).toBe(401);
    await daemon.ok("POST", "/v1/rooms/measured/messages", { source: "one", topic: "news", payload: 1 });
    const then = await look();
    const moved = (name: string, labels?: Record<string, string>) => then(name, labels) - before(name, labels);

    expect(moved("roomd_rooms")).toBe(1);
    expect(moved("roomd_requests_total", { door: "rest", operation: "room_create", status: "2xx" })).toBe(1);
    expect(moved("roomd_requests_total", { door: "rest", operation: "room_get", status: "4xx" })).toBe(1);
    expect(moved("roomd_requests_total", { operation: "room_list", status: "4xx" })).toBe(1);
    expect(moved("roomd_requests_total", { operation: "metrics", status: "2xx" })).toBe(1);
    expect(moved("roomd_request_duration_seconds_count", { operation: "room_create" })).toBe(1);
    expect(moved("roomd_request_duration_seconds_sum", { operation: "room_create" })).toBeGreaterThan(0);
    expect(moved("roomd_request_duration_seconds_bucket", { operation: "room_create", le: "+Inf" })).toBe(1);
    expect(moved("roomd_request_problems_total", { code: "room_not_found" })).toBe(1);
    expect(moved("roomd_request_problems_total", { code: "missing_credentials" })).toBe(1);
    expect(moved("roomd_messages_total")).toBe(1);
    expect(moved("roomd_database_commits_total")).toBeGreaterThan(0);
    expect(moved("roomd_database_flush_duration_seconds_count")).toBe(moved("roomd_database_commits_total"));
    expect(moved("roomd_audit_records_total")).toBeGreaterThan(0);
    expect(moved("roomd_uptime_seconds")).toBeGreaterThan(0);
    expect(moved("process_cpu_seconds_total")).toBeGreaterThan(0);

    expect(then("roomd_guest_cids_free")).toBe(900);
    expect(then("roomd_guest_memory_allocated_bytes")).toBe(0);
    expect(then("roomd_guest_memory_free_bytes")).toBeGreaterThan(0);
    expect(then("process_resident_memory_bytes")).toBeGreaterThan(1024 ** 2);
    expect(then("process_open_fds")).toBeGreaterThan(5);
    expect(then("process_max_fds")).toBeGreaterThan(then("process_open_fds"));
    expect(then("process_start_time_seconds")).toBeCloseTo(Date.now() / 1000 - then("roomd_uptime_seconds"), -1);
    // There is no template here.
    expect(then("roomd_check_status", { check: "templates" })).toBe(2);
    expect(then("roomd_disk_size_bytes")).toBeGreaterThan(then("roomd_disk_free_bytes"));
    expect(then("roomd_database_size_bytes")).toBeGreaterThan(4096);
    expect(then("roomd_host_memory_size_bytes")).toBeGreaterThan(then("roomd_host_memory_available_bytes"));
  });

  test("have labels with a fixed set of values, and no IDs", async () => {
    await daemon.api("GET", "/v1/no-such-route");
    await daemon.api("GET", "/v1/rooms/measured?no_such_field=1");
    const text: string = (await bare(daemon, "GET", "/metrics")).body;
    const { version } = (await daemon.ok("GET", "/v1/openapi.json")).info;
    const words: Record<string, readonly string[]> = {
      version: [version],
      acceleration: ["kvm", "tcg"],
      state: SANDBOX_STATES,
      host_state: HOST_STATES,
      door: SOURCES,
      operation: Object.keys(operations),
      status: ["1xx", "2xx", "3xx", "4xx", "5xx"],
      check: CHECK_IDS,
      start_mode: START_MODES,
      cause: EXIT_CAUSES,
      from: ["paused", "hibernated"],
      reason: ["resume", ...WAKE_REASONS],
      code: Object.keys(ERRORS),
      direction: ["sent", "received"],
      level: ["warn", "error"],
      mode: ["busy", "idle"],
      outcome: ["taken", "not_taken", "dropped", "done", "failed"],
      receiver: ["taking", "failing"],
      class: ["org", "net", "host"],
      label: [...Object.keys(operations), ...LOOP_KINDS],
    };
    for (const { labels } of parse(text)) {
      const { le = "+Inf", ...rest } = labels;
      expect(le).toMatch(/^(\d+(\.\d+)?|\+Inf)$/);
      for (const [name, word] of Object.entries(rest)) expect(words[name], name).toContain(word);
    }
    const keyId = (await daemon.ok("GET", "/v1/me")).key_id;
    for (const id of [daemon.orgId, keyId, "measured"]) expect(text).not.toContain(id);
    const states = parse(text).filter(({ name }) => name === "roomd_sandboxes");
    expect(states.map(({ labels }) => labels.state)).toEqual(SANDBOX_STATES.filter((state) => state !== "destroyed"));
  });

  test("of durations have cumulative buckets that add up to the count", async () => {
    const samples = parse((await bare(daemon, "GET", "/metrics")).body);
    const buckets = samples.filter(({ name }) => name.endsWith("_bucket"));
    const series = Map.groupBy(buckets, ({ name, labels: { le: _, ...rest } }) => JSON.stringify([name, rest]));
    expect(series.size).toBeGreaterThan(5);
    for (const [key, bounded] of series) {
      const [name, labels] = JSON.parse(key);
      const counts = bounded.map(({ value }) => value);
      expect(counts, key).toEqual(counts.toSorted((a, b) => a - b));
      const bounds = bounded.map(({ labels: { le } }) => (le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le)));
      expect(bounds, key).toEqual(bounds.toSorted((a, b) => a - b));
      const all = samples.find(
        (sample) => sample.name === name.replace("_bucket", "_count") && Bun.deepEquals(sample.labels, labels),
      );
      expect(all?.value, key).toBe(counts.at(-1));
    }
  });

  test("are answered to HEAD without a body", async () => {
    const { status, headers, body } = await bare(daemon, "HEAD", "/metrics");
    expect([status, headers.get("content-type"), body]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8", ""]);
  });
});

describe("a client on another host", () => {
  const relayed = { "x-forwarded-for": "203.0.113.7" };

  async function expectGuarded(ask: (headers: Record<string, string>) => Promise<Answer>) {
    expect(await ask({})).toMatchObject({ status: 401, body: { code: "missing_credentials" } });
    const others = await makeKey(daemon, { scopes: SCOPES.filter((scope) => scope !== "org:admin") });
    expect(await ask(bearer(others.key))).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
    const admin = await ask(bearer((await makeKey(daemon, { scopes: ["org:admin"] })).key));
    expect(admin.status).toBe(200);
    expect(parse(admin.body).length).toBeGreaterThan(10);
  }

  test("through a proxy on the host requires a key with org:admin", async () => {
    await expectGuarded((headers) => bare(daemon, "GET", "/metrics", { ...headers, ...relayed }));
  });

  test("by another name of the host requires one", async () => {
    await expectGuarded((headers) => bare(daemon, "GET", "/metrics", { ...headers, host: "rooms.example.org" }));
  });

  // nginx's plain proxy_pass: its own address as Host, and no header about the client.
  const proxied = { connection: "close" };

  test("through a proxy without forwarding headers requires one if clients use another name", async () => {
    daemon.env.ROOMD_HTTP_BASE_URL = "https://rooms.example.org";
    await daemon.restart();
    try {
      await expectGuarded((headers) => bare(daemon, "GET", "/metrics", headers));
    } finally {
      delete daemon.env.ROOMD_HTTP_BASE_URL;
      await daemon.restart();
    }
    expect((await bare(daemon, "GET", "/metrics")).status).toBe(200);
  });

  test("through a proxy that closes each connection requires one", async () => {
    await expectGuarded((headers) => bare(daemon, "GET", "/metrics", { ...headers, ...proxied }));
  });

  test.each([
    ["127.0.0.1", "127.0.0.1", {}, true],
    ["::1", "[::1]", {}, true],
    ["::ffff:127.0.0.1", "localhost", {}, true],
    ["127.3.2.1", "localhost", { accept: "text/plain" }, true],
    ["127.0.0.1", "127.0.0.1.example.org", {}, false],
    ["127.0.0.1", "localhost", { forwarded: "for=203.0.113.7" }, false],
    ["127.0.0.1", "localhost", { via: "1.1 proxy" }, false],
    ["::ffff:10.0.0.1", "localhost", {}, false],
    ["10.0.0.1", "127.0.0.1", {}, false],
    ["1.127.0.0.1", "localhost", {}, false],
    ["fe80::1", "[::1]", {}, false],
    [null, "localhost", {}, false],
    ["127.0.0.1", "127.0.0.1", { connection: "keep-alive" }, true],
    ["127.0.0.1", "127.0.0.1", { connection: "close" }, false],
    ["127.0.0.1", "127.0.0.1", { connection: "Close, TE" }, false],
  ])("from %s to %s with %j is local: %s", (address, hostname, given, expected) => {
    const origin = { address, hostname, headers: new Headers(given as Record<string, string>) };
    for (const own of ["http://127.0.0.1:8080", "https://localhost:8443", "http://[::1]:8080"]) {
      expect(makeIsFromHost(own)(origin), own).toBe(expected);
    }
    for (const other of ["https://rooms.example.org", "https://127.0.0.1.example.org", "http://203.0.113.7:8080"]) {
      expect(makeIsFromHost(other)(origin), other).toBe(false);
    }
  });
});
