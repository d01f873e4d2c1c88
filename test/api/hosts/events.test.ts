/**
 * An organization's events and audit records over all hosts: each record once, in the order of its host, through any host, despite any
 * crash.
 */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SLOW_READER } from "../../../daemon/domain/audit/index.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { LONG, until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;
const EVENTS = "/v1/orgs/self/events";
const AUDIT = "/v1/orgs/self/audit";

beforeAll(async () => {
  service = await TestHosts.start(2, { env: { ROOMD_EVENTS_SLOW_READER: "4s" } });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
  for (const [index, room_id] of ["a", "b"].entries()) {
    await one.ok("POST", "/v1/rooms", { room_id, host: `host-${index + 1}` });
  }
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

/** A host's audit records of the organization, in order. */
function chainOf(host: TestDaemon): string[] {
  using rows = new Database(join(host.dataDir, "roomd.db"), { readonly: true });
  rows.run("PRAGMA busy_timeout = 5000");
  return rows
    .query<{ audit_id: string }, [string]>("SELECT audit_id FROM audit WHERE org_key = ? ORDER BY seq")
    .all(one.orgId)
    .map(({ audit_id }) => audit_id);
}

/** A reader: the events that it received, and its cursor. */
class Reader {
  readonly told: Json[] = [];
  readonly warnings: string[] = [];
  cursor: string | null;
  #over = new AbortController();
  #reading: Promise<void> = Promise.resolve();

  constructor(cursor: string | null = null) {
    this.cursor = cursor;
  }

  /** Resolves once it is answered. */
  async follow(host: TestDaemon, by: "after" | "last-event-id" = "after"): Promise<void> {
    this.#over = new AbortController();
    const { cursor } = this;
    const place = cursor === null ? {} : { [by]: cursor };
    const asSse = by === "last-event-id";
    const query = asSse ? "" : `?${new URLSearchParams(place)}`;
    const answer = await fetch(host.url + EVENTS + query, {
      headers: {
        authorization: `Bearer ${one.apiKey}`,
        ...(asSse ? { accept: "text/event-stream", ...place } : {}),
      },
      signal: this.#over.signal,
    });
    if (!answer.ok || !answer.body) throw new Error(`${answer.status} ${await answer.text()}`);
    this.#reading = this.#read(answer.body).catch(() => {});
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = "";
    for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
      text += new TextDecoder().decode(bytes);
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
    }
  }

  #take(line: string): void {
    if (!/^(data: )?\{/.test(line)) return;
    const event: Json = JSON.parse(line.replace(/^data: /, ""));
    if (event.warnings) this.warnings.push(...event.warnings);
    if (event.type !== undefined) return;
    this.told.push(event);
    this.cursor = event.cursor;
  }

  /** Disconnects at the current position. */
  async leave(): Promise<void> {
    this.#over.abort();
    await this.#reading;
  }

  /** Resolves once the server has ended the stream. */
  async ended(): Promise<void> {
    await this.#reading;
  }

  ids(): string[] {
    return this.told.map(({ audit_id }) => audit_id);
  }
}

/** The reader has a part of each chain without gaps: all records after its first one, once and in order. */
function expectWhole(reader: Reader, chains: readonly string[][]): void {
  const ids = reader.ids();
  expect(new Set(ids).size).toBe(ids.length);
  for (const chain of chains) {
    const received = ids.filter((id) => chain.includes(id));
    const from = chain.indexOf(received[0] ?? "");
    expect(received).toEqual(chain.slice(from, from + received.length));
  }
}

async function hasTold(reader: Reader, host: TestDaemon): Promise<string> {
  const path = `/x-${Math.random().toString(36).slice(2)}`;
  const room = host === one ? "a" : "b";
  await host.ok("POST", `/v1/rooms/${room}/drive/write`, { path, content: "x" });
  await until(`the event of ${path} has arrived`, async () => reader.told.some(({ details }) => details.path === path));
  return path;
}

/** Writes at both hosts until it is ended. */
function writing() {
  let isOver = false;
  const lanes = [one, two].map(async (host, index) => {
    for (let count = 0; !isOver; count++) {
      const path = `/w/${index}/${count}`;
      await host
        .api("POST", `/v1/rooms/${index === 0 ? "a" : "b"}/drive/write`, { path, content: "x" })
        .catch(() => {});
      await Bun.sleep(10);
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(lanes);
  };
}

describe("events", () => {
  test.each([
    ["the first host", () => one],
    ["the second host", () => two],
  ])("of both hosts reach a new reader of %s", async (_, host) => {
    const reader = new Reader();
    await reader.follow(host());
    for (const each of [one, two, two, one]) await hasTold(reader, each);
    await reader.leave();
    expect(reader.warnings).toEqual([]);
    const written = reader.told.filter(({ event }) => event === "drive.written");
    expect(written.map(({ room_id }) => room_id)).toEqual(["a", "b", "b", "a"]);
    expectWhole(reader, [chainOf(one), chainOf(two)]);
  });

  test("from the beginning are complete, and without `follow` the stream ends after them", async () => {
    for (const host of [one, two]) {
      const chains = [chainOf(one), chainOf(two)];
      const text = String((await host.api("GET", `${EVENTS}?after=0&follow=false`)).body);
      const events: Json[] = text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      const ids = events.map(({ audit_id }) => audit_id);
      for (const chain of chains) expect(ids.filter((id) => chain.includes(id))).toEqual(chain);
      const middle = events[Math.floor(events.length / 2)] as Json;
      const other = host === one ? two : one;
      const rest = await other.api("GET", `${EVENTS}?after=${middle.cursor}&follow=false`);
      const further = new Set(
        String(rest.body)
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line).audit_id),
      );
      for (const [index, id] of ids.entries()) expect(further.has(id)).toBe(index > ids.indexOf(middle.audit_id));
    }
  });

  test("are delivered once to a reader that keeps switching hosts while both write", async () => {
    const end = writing();
    const reader = new Reader();
    for (let turn = 0; turn < 8; turn++) {
      const before = reader.told.length;
      await reader.follow(turn % 2 === 0 ? one : two, turn % 3 === 0 ? "after" : "last-event-id");
      await until("more events have arrived", async () => reader.told.length > before + 20);
      await reader.leave();
    }
    await end();
    await reader.follow(one);
    await hasTold(reader, one);
    await hasTold(reader, two);
    await reader.leave();
    expectWhole(reader, [chainOf(one), chainOf(two)]);
    const why = [one, two].flatMap(({ log }) => log.split("\n").filter((line) => line.includes("another host")));
    expect([reader.warnings, why]).toEqual([[], []]);
  }, 30_000);

  test("of a killed host resume where they stopped once it is back, and this is reported once", async () => {
    const end = writing();
    const reader = new Reader();
    await reader.follow(one);
    await hasTold(reader, two);
    await two.end("SIGKILL");
    await until("the reader is warned", async () => reader.warnings.length > 0);
    // The cursor of now is good while it is away.
    await reader.leave();
    const { cursor } = reader;
    expect(reader.warnings).toEqual([expect.stringContaining("host-2")]);
    await reader.follow(one);
    await until("the reader is warned after reconnecting", async () => reader.warnings.length > 1);
    await hasTold(reader, one);
    await two.serve();
    await hasTold(reader, two);
    await end();
    await hasTold(reader, one);
    await hasTold(reader, two);
    await reader.leave();
    expect(reader.warnings).toHaveLength(2);
    expect(cursor).not.toBe(reader.cursor);
    expectWhole(reader, [chainOf(one), chainOf(two)]);
  }, 30_000);

  test("continue at the other host when the queried one is killed", async () => {
    const end = writing();
    const reader = new Reader();
    await reader.follow(two, "last-event-id");
    await hasTold(reader, one);
    await hasTold(reader, two);
    await two.end("SIGKILL");
    await reader.ended();
    await reader.follow(one, "last-event-id");
    await hasTold(reader, one);
    await two.serve();
    await hasTold(reader, two);
    await end();
    await reader.leave();
    expectWhole(reader, [chainOf(one), chainOf(two)]);
  }, 30_000);

  test("of an unresponsive host are delivered once it answers again", async () => {
    process.kill(two.pid, "SIGSTOP");
    const reader = new Reader();
    const startedAt = performance.now();
    await reader.follow(one);
    await hasTold(reader, one);
    expect(performance.now() - startedAt).toBeLessThan(3000);
    expect(reader.warnings).toEqual([expect.stringContaining("host-2")]);
    // It has no place in this cursor yet.
    await reader.leave();
    process.kill(two.pid, "SIGCONT");
    await two.ok("POST", "/v1/rooms/b/drive/write", { path: "/meanwhile", content: "x" });
    await reader.follow(two);
    await until("the event of the interruption has arrived", async () =>
      reader.told.some(({ details }) => details.path === "/meanwhile"),
    );
    await hasTold(reader, two);
    await reader.leave();
    expectWhole(reader, [chainOf(one), chainOf(two)]);
    expect(reader.warnings).toHaveLength(1);
  }, 30_000);

  test("of other hosts end when their reader disconnects", async () => {
    const { port } = new URL(`http://${two.env.ROOMD_CLUSTER_LISTEN}`);
    const before = connectionsTo(Number(port));
    const readers = Array.from({ length: 12 }, () => new Reader());
    await Promise.all(readers.map((reader) => reader.follow(one)));
    expect(connectionsTo(Number(port))).toBeGreaterThanOrEqual(12);
    await Promise.all(readers.map((reader) => reader.leave()));
    await until("the connections are closed", async () => connectionsTo(Number(port)) <= before);
  });

  test("are refused with a cursor that was never issued", async () => {
    const forged = (await one.ok("GET", `${AUDIT}?limit=1`)).next_cursor;
    for (const after of ["x", forged, "41"]) {
      for (const host of [one, two]) {
        expect((await host.problem("GET", `${EVENTS}?after=${after}`)).code).toBe("invalid_cursor");
      }
    }
  });
});

if (!LONG)
  console.log("events of hosts: short run; ROOMD_TEST_LONG=1 has random kills, a stopped host and slow readers");

describe.runIf(LONG)("events over a long time", () => {
  test("of a host that is stopped while followed are delivered once it continues", async () => {
    const reader = new Reader();
    await reader.follow(one);
    await hasTold(reader, two);
    process.kill(two.pid, "SIGSTOP");
    await until("the reader is warned", async () => reader.warnings.length > 0, 60_000);
    await hasTold(reader, one);
    process.kill(two.pid, "SIGCONT");
    await hasTold(reader, two);
    await reader.leave();
    expect(reader.warnings).toHaveLength(1);
    expectWhole(reader, [chainOf(one), chainOf(two)]);
  }, 120_000);

  test("are delivered once while hosts are killed and stopped at random", async () => {
    const end = writing();
    const reader = new Reader();
    for (let turn = 0; turn < 20; turn++) {
      const [target, other] = Math.random() < 0.5 ? [one, two] : [two, one];
      await reader.follow(target, Math.random() < 0.5 ? "after" : "last-event-id");
      await hasTold(reader, target);
      const struck = Math.random() < 0.5 ? target : other;
      const isKilled = Math.random() < 0.7;
      if (isKilled) await struck.end("SIGKILL");
      else process.kill(struck.pid, "SIGSTOP");
      await Bun.sleep(Math.random() * 2000);
      if (Math.random() < 0.5) await reader.leave();
      if (isKilled) await struck.serve();
      else process.kill(struck.pid, "SIGCONT");
      await reader.leave();
    }
    await end();
    await reader.follow(one);
    await hasTold(reader, one);
    await hasTold(reader, two);
    await reader.leave();
    expect(reader.told.length).toBeGreaterThan(500);
    expectWhole(reader, [chainOf(one), chainOf(two)]);
  }, 300_000);

  /** More than all buffers on the way can hold. */
  const fill = async (host: TestDaemon) => {
    const nowhere = `/v1/rooms/${host === one ? "a" : "b"}/drive/stat?path=${`/${"a".repeat(250)}`.repeat(16)}`;
    const lane = async () => {
      for (let sent = 0; sent < 250; sent++) await host.api("GET", nowhere);
    };
    await Promise.all(Array.from({ length: 8 }, lane));
  };

  test("as exported lines are visibly truncated for a stalled reader", async () => {
    await Promise.all([fill(one), fill(two)]);
    const { socket, closed } = asking(one, AUDIT, LINES.accept);
    let text = "";
    socket.once("data", () => socket.pause());
    await until(
      "the export is disconnected",
      async () => one.logged({ message: SLOW_READER.export }).length > 0,
      60_000,
    );
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.resume();
    await closed;
    expect(text.endsWith("\r\n0\r\n\r\n")).toBe(false);
  }, 120_000);

  test("end for a stalled reader at both hosts, and none is skipped", async () => {
    const { port } = new URL(`http://${two.env.ROOMD_CLUSTER_LISTEN}`);
    const before = connectionsTo(Number(port));
    await Promise.all([fill(one), fill(two)]);
    const { socket, closed } = asking(one, `${EVENTS}?after=0`, "text/event-stream");
    let text = "";
    const started = Promise.withResolvers<void>();
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (text.length < 100_000) return;
      socket.pause();
      started.resolve();
    });
    await started.promise;
    await until(
      "the stream is disconnected",
      async () => one.logged({ message: SLOW_READER.events }).length > 0,
      60_000,
    );
    await until("the stream of the other host is disconnected", async () => connectionsTo(Number(port)) <= before + 1);
    socket.removeAllListeners("data").on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.resume();
    await closed;
    const reader = new Reader();
    for (const [, line = ""] of text.matchAll(/^data: (\{.*\})$/gm)) {
      const event: Json = JSON.parse(line);
      reader.told.push(event);
      reader.cursor = event.cursor;
    }
    await reader.follow(two);
    await hasTold(reader, one);
    await hasTold(reader, two);
    await reader.leave();
    expectWhole(reader, [chainOf(one), chainOf(two)]);
    expect(new Set(chainOf(two).filter((id) => !reader.ids().includes(id))).size).toBeLessThan(5);
  }, 120_000);
});

/** A raw request, by a client that controls its reads. */
function asking(host: TestDaemon, path: string, accept: string) {
  const { hostname, port } = new URL(host.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const closed = new Promise((done) => socket.once("close", done));
  socket.on("error", () => {});
  const headers = `Host: ${hostname}\r\nAccept: ${accept}\r\nAuthorization: Bearer ${one.apiKey}\r\nConnection: close\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\n`);
  return { socket, closed };
}

/** Connections that this port of this machine has taken. */
function connectionsTo(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return rows.filter((row) => new RegExp(`^\\s*\\d+: \\w+:${hex} \\w+:\\w+ 01 `).test(row)).length;
}

const LINES = { accept: "application/x-ndjson" };

async function lines(host: TestDaemon, query: string): Promise<Json[]> {
  const answer = await host.api("GET", `${AUDIT}?${query}`, undefined, LINES);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
  return text
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

describe("the audit export", () => {
  const upTo = () => `until=${new Date().toISOString()}`;

  test.each(["asc", "desc"])("has the records of all hosts in the order of the list: %s", async (order) => {
    for (const host of [one, two]) {
      const query = `event=drive.&order=${order}&${upTo()}`;
      const all = await lines(host, query);
      const listed: Json[] = [];
      let cursor = "";
      do {
        const page = await host.ok("GET", `${AUDIT}?${query}&limit=100${cursor}`);
        listed.push(...page.items);
        cursor = page.next_cursor && `&cursor=${page.next_cursor}`;
      } while (cursor);
      expect(all).toEqual(listed);
      expect(new Set(all.map(({ room_id }) => room_id)).size).toBe(2);
      expect((await lines(host, `${query}&limit=7`)).map(({ audit_id }) => audit_id)).toEqual(
        all.slice(0, 7).map(({ audit_id }) => audit_id),
      );
    }
  });

  test("continues at a cursor of the list, at either host", async () => {
    const query = `event=drive.&order=asc&${upTo()}`;
    const all = await lines(one, query);
    const { next_cursor } = await one.ok("GET", `${AUDIT}?${query}&limit=9`);
    for (const host of [one, two]) expect(await lines(host, `${query}&cursor=${next_cursor}`)).toEqual(all.slice(9));
    expect((await one.problem("GET", `${AUDIT}?order=desc&cursor=${next_cursor}`, undefined, LINES)).code).toBe(
      "invalid_cursor",
    );
  });

  test("omits an unavailable host with a warning; its part stays out on later pages from any host", async () => {
    const query = `event=drive.&order=desc&${upTo()}`;
    await two.end("SIGKILL");
    const [warning, ...left] = await lines(one, query);
    expect(warning).toEqual({ type: "ping", warnings: [expect.stringContaining("host-2")] });
    expect(new Set(left.map(({ room_id }) => room_id))).toEqual(new Set(["a"]));
    const page = await one.ok("GET", `${AUDIT}?${query}&limit=5`);
    await two.serve();
    await until("the host answers again", async () => !(await one.ok("GET", "/v1/rooms")).warnings);
    const cursor = `&cursor=${page.next_cursor}`;
    for (const host of [one, two]) {
      const rest = await host.ok("GET", `${AUDIT}?${query}&limit=1000${cursor}`);
      expect(rest.items.map(({ audit_id }: Json) => audit_id)).toEqual(
        left.slice(5, 1005).map(({ audit_id }) => audit_id),
      );
      expect((await lines(host, query + cursor)).map(({ audit_id }) => audit_id)).toEqual(
        left.slice(5).map(({ audit_id }) => audit_id),
      );
    }
  });
});

test("a host that was removed and rejoined under the same name delivers all of its new chain", async () => {
  let three = await service.add({ env: { ROOMD_HOST_ID: "host-3" } });
  await service.knowEachOther(3);
  await one.ok("POST", "/v1/rooms", { room_id: "c", host: "host-3" });
  for (let index = 0; index < 10; index++) {
    await three.ok("POST", "/v1/rooms/c/drive/write", { path: `/${index}`, content: "x" });
  }
  const reader = new Reader("0");
  await reader.follow(one);
  await until("the last event has arrived", async () => reader.told.some(({ details }) => details.path === "/9"));
  const page = await one.ok("GET", `${AUDIT}?order=asc&limit=5`);
  const newestFirst = await one.ok("GET", `${AUDIT}?limit=5`);
  const { cursor } = reader;
  await three.stop();
  service.hosts.pop();
  expect((await one.cli(["cluster", "remove", "host-3", "--force"])).status).toBe(0);
  await until("all hosts know each other", async () =>
    (await Promise.all([one, two].map((host) => host.ok("GET", "/v1/hosts")))).every(
      ({ items }) => items.filter(({ state }: Json) => state === "active").length === 2,
    ),
  );
  three = await service.add({ env: { ROOMD_HOST_ID: "host-3" } });
  await service.knowEachOther(3);
  await one.ok("POST", "/v1/rooms", { room_id: "c2", host: "host-3" });
  const isTold = (each: Reader) => async () => each.told.some(({ room_id }) => room_id === "c2");
  // Received both by a reader that stayed connected and by a reader that reconnects with the earlier cursor.
  await until("the reader has the event", isTold(reader));
  for (const host of [one, two, three]) {
    const again = new Reader(cursor);
    await again.follow(host);
    await until("a new reader has the event", isTold(again));
    const chain = chainOf(three);
    const received = again.ids().filter((id) => chain.includes(id));
    expect(received).toEqual(chain.slice(0, received.length));
    await again.leave();
    const further = await host.ok("GET", `${AUDIT}?event=room.&order=asc&cursor=${page.next_cursor}`);
    expect(further.items.map(({ room_id }: Json) => room_id)).toContain("c2");
    const newest = await host.ok("GET", `${AUDIT}?event=room.&order=desc&cursor=${newestFirst.next_cursor}`);
    expect(newest.items.map(({ room_id }: Json) => room_id)).not.toContain("c2");
  }
  await reader.leave();
  expectWhole(reader, [chainOf(one), chainOf(two), chainOf(three)]);
}, 60_000);
