/** The live connection: several streams over one WebSocket, each with the checks of a call, and the current state of a room. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAX_LIVE_STREAMS } from "../../../shared/api/overview/live.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { LiveClient } from "../../harness/clients/live-client.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { makeKey } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("r");
  await daemon.room("other");
});
afterAll(() => daemon.stop());

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const send = (source: string, destination: string) =>
  daemon.ok("POST", "/v1/rooms/r/messages", { source, destination, payload: { q: 1 }, kind: "request" });

test("events of two rooms and of the organization share one connection, each with its stream ID", async () => {
  const live = await new LiveClient(daemon).open();
  for (const [id, path] of [
    [1, "/v1/rooms/r/events"],
    [2, "/v1/rooms/other/events"],
    [3, "/v1/orgs/self/events"],
  ] as const) {
    expect(await live.first(id, path)).toMatchObject({ id, type: "opened", headers: { date: expect.any(String) } });
  }
  await daemon.ok("POST", "/v1/rooms/r/drive/mkdir", { path: "/made" });
  const record = await live.line(1, ({ event }) => event.startsWith("drive."));
  await live.line(3, ({ audit_id }) => audit_id === record.audit_id);
  expect(live.lines(2).filter(({ room_id }) => room_id === "r")).toEqual([]);
  live.send({ op: "close", id: 1 });
  expect((await untilSaid(live, ({ id, type }) => id === 1 && type === "ended")).type).toBe("ended");
  live.close();
});

const untilSaid = async (live: LiveClient, is: (frame: Json) => boolean): Promise<Json> => {
  const end = Date.now() + 10_000;
  for (; Date.now() < end; await Bun.sleep(20)) {
    const found = live.said.find(is);
    if (found) return found;
  }
  throw new Error("no such frame");
};

test("a stream is a call: its scope, its room and its path are checked, and it is audited", async () => {
  const { key } = await makeKey(daemon, { scopes: ["fabric:read"] });
  const live = await new LiveClient(daemon, bearer(key)).open();
  expect(await live.first(1, "/v1/rooms/r/now")).toMatchObject({ type: "opened" });
  expect(await live.first(2, "/v1/rooms/r/events")).toMatchObject({
    type: "refused",
    status: 403,
    problem: { code: "insufficient_scope" },
  });
  expect(await live.first(3, "/v1/rooms/nope/now")).toMatchObject({ status: 404, problem: { code: "room_not_found" } });
  for (const [n, path] of [
    "/v1/rooms/r",
    "/health",
    "/v1/live/ws",
    "//evil.test/v1/rooms/r/now",
    "/v1/rooms/r/now/../audit",
  ].entries()) {
    expect(await live.first(10 + n, path)).toMatchObject({ status: 404, problem: { code: "route_not_found" } });
  }
  const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=room.followed&limit=10");
  expect(items[0]).toMatchObject({ outcome: "success", source: "rest" });
  live.close();
});

test("an invalid request closes the connection, and too many streams are refused", async () => {
  for (const frame of [
    "no json",
    "[]",
    { op: "open", id: 0, path: "/v1/rooms/r/now" },
    { op: "run", id: 1 },
    { op: "open", id: 1.5 },
  ]) {
    const live = await new LiveClient(daemon).open();
    live.send(frame);
    expect(await live.closed).toMatchObject({ code: 4000 });
  }
  const large = await new LiveClient(daemon).open();
  large.send({ op: "open", id: 1, path: `/v1/rooms/${"r".repeat(9000)}/now` });
  expect(await large.closed).toMatchObject({ code: 1009 });
  const live = await new LiveClient(daemon).open();
  for (let id = 1; id <= MAX_LIVE_STREAMS; id++)
    expect(await live.first(id, "/v1/rooms/r/now")).toMatchObject({ type: "opened" });
  expect(await live.first(99, "/v1/rooms/r/now")).toMatchObject({ status: 429, problem: { code: "rate_limited" } });
  live.send({ op: "close", id: 1 });
  await untilSaid(live, ({ id, type }) => id === 1 && type === "ended");
  expect(await live.first(100, "/v1/rooms/r/now")).toMatchObject({ type: "opened" });
  live.close();
});

test("without credentials, or from another site's page, the connection is refused", async () => {
  await expect(new LiveClient(daemon, {}).open()).rejects.toThrow();
  await expect(new LiveClient(daemon, bearer("key-wrong")).open()).rejects.toThrow();
  const owner = await Visitor.owner(daemon);
  const cookie = [...owner.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const own = { cookie, origin: daemon.url };
  const live = await new LiveClient(daemon, own).open();
  expect(await live.first(1, "/v1/rooms/r/events")).toMatchObject({ type: "opened" });
  for (const foreign of [{ cookie, origin: "https://evil.test" }, { cookie }, { cookie, origin: "null" }]) {
    await expect(new LiveClient(daemon, foreign as Record<string, string>).open()).rejects.toThrow();
  }
  // Signed out, it ends.
  await owner.send("/signout", {});
  expect(await live.closed).toMatchObject({ code: 4002 });
});

test("the end of a key closes its connection and streams", async () => {
  const { key, key_id } = await makeKey(daemon, { scopes: ["audit:read", "fabric:read"] });
  const live = await new LiveClient(daemon, bearer(key)).open();
  await live.first(1, "/v1/rooms/r/events");
  await daemon.ok("DELETE", `/v1/orgs/self/keys/${key_id}`);
  expect(await live.closed).toMatchObject({ code: 4002 });
});

test("the state of a room reports a deadlock within a second, and its end", async () => {
  const live = await new LiveClient(daemon).open();
  await live.first(1, "/v1/rooms/r/now");
  const first = await live.line(1, ({ type }) => type === "now");
  expect(first).toMatchObject({ waits: [], commands: [], deadlocks: [], truncated: false });
  for (const agent of ["alice", "bob"]) await daemon.ok("GET", `/v1/rooms/r/messages?agent_id=${agent}`);
  const began = performance.now();
  const request = await send("alice", "bob");
  // On a busy machine every call is slow.
  const callMs = performance.now() - began;
  await live.line(1, ({ type, waits }) => type === "now" && waits.length === 1);
  await send("bob", "alice");
  const deadlock = await live.line(1, ({ type }) => type === "deadlock", Math.max(1000, 10 * callMs));
  expect(deadlock.agents.toSorted()).toEqual(["alice", "bob"]);
  expect(await live.line(1, ({ type, deadlocks }) => type === "now" && deadlocks.length === 1)).toMatchObject({
    waits: [{ agent_id: "alice", type: "reply", on: ["bob"] }, { agent_id: "bob" }],
  });
  await daemon.ok("POST", `/v1/rooms/r/messages/${request.message_id}/reply`, { source: "bob", payload: 1 });
  await live.line(1, ({ type, deadlocks, waits }) => type === "now" && deadlocks.length === 0 && waits.length === 1);
  expect(live.lines(1).every((line) => !("id" in line))).toBe(true);
  const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?limit=1000");
  expect(items.filter(({ event }: Json) => /deadlock|command/.test(event))).toEqual([]);
  live.close();
});

test("the state is also a stream of its own, which ends with the room", async () => {
  await daemon.room("brief");
  const response = await fetch(`${daemon.url}/v1/rooms/brief/now`, { headers: bearer(daemon.apiKey) });
  expect(response.headers.get("content-type")).toContain("application/x-ndjson");
  const read = response.text();
  await daemon.ok("DELETE", "/v1/rooms/brief");
  const lines = (await read)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines[0]).toMatchObject({ type: "now" });
});

test("the state of a room with very many waits is truncated", async () => {
  const participants = Array.from({ length: 210 }, (_, index) => `agent-${String(index).padStart(3, "0")}`);
  await daemon.room("many");
  for (const agent_id of participants.slice(0, 105)) {
    const { status } = await daemon.api("POST", "/v1/rooms/many/barriers", {
      ...{ barrier_id: "all", agent_id, participants, timeout_ms: 0 },
    });
    expect([200, 202, 408]).toContain(status);
  }
  const live = await new LiveClient(daemon).open();
  await live.first(1, "/v1/rooms/many/now?follow=false");
  const { waits, truncated } = await live.line(1, ({ type }) => type === "now");
  expect(truncated).toBe(true);
  expect(waits.length).toBe(100);
  expect(waits[99].on.length).toBe(100);
  live.close();
});
