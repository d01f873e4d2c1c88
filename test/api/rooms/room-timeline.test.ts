/** A room's timeline, on a daemon without guests: the audit records that it shows, its pages, and work in progress. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TimelineItem } from "../../../shared/timeline/item.ts";
import { toItem } from "../../../shared/timeline/to-item.ts";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, until } from "../calls.ts";

let daemon: TestDaemon;
let count = 0;

beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

async function roomOf() {
  const id = `timeline-${++count}`;
  await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  return {
    id,
    path,
    send: (body: object): Promise<Answer> => daemon.api("POST", `${path}/messages`, { payload: 1, ...body }),
    arrive: (body: object): Promise<Answer> =>
      daemon.api("POST", `${path}/barriers`, { barrier_id: "merged", ...body }),
    timeline: (query = ""): Promise<Json> => daemon.ok("GET", `${path}/timeline?${query}`),
  };
}

const titles = ({ items }: Json): string[] => items.map(({ title }: TimelineItem) => title);
const typesOf = ({ items }: Json): string[] => items.map(({ type }: TimelineItem) => type);

test("has all events and omits reads", async () => {
  const room = await roomOf();
  await daemon.ok("GET", `${room.path}/messages?agent_id=worker`);
  await daemon.ok("GET", room.path);
  const sent = (await room.send({ source: "planner", destination: "worker", kind: "request" })).body;
  const waited = await room.send({ source: "planner", destination: "worker", wait_reply: true, timeout_ms: 100 });
  expect(waited.status).toBe(504);
  await daemon.ok("POST", `${room.path}/messages/${sent.message_id}/reply`, { source: "worker", payload: 2 });
  await daemon.ok("GET", `${room.path}/messages?agent_id=worker&after=9&wait_ms=80`);
  await room.send({ source: "planner", destination: "*" });
  await room.arrive({ agent_id: "worker", parties: 2, timeout_ms: 60 });
  await room.arrive({ agent_id: "planner", timeout_ms: 0 });
  await daemon.ok("POST", `${room.path}/drive/write`, { path: "a.txt", content: "four" });
  const { items, open, room_id } = await until(
    () => room.timeline("order=asc"),
    (seen: Json) => seen.items.length === 9,
  );
  expect(room_id).toBe(room.id);
  // Between their calls the agents still wait for each other.
  expect(open.map(({ type, agent_id, until }: Json) => ({ type, agent_id, until }))).toContainEqual({
    type: "wait",
    agent_id: "planner",
    until: null,
  });
  expect(
    items.map(({ type, kind, title, to, lane, agent_id, outcome }: TimelineItem) => [
      type,
      kind,
      lane,
      agent_id,
      outcome,
      title,
      to,
    ]),
  ).toEqual([
    ["room", "mark", "room", null, "success", "room created", []],
    ["message", "mark", "agent", "planner", "success", "request to worker", ["worker"]],
    ["wait", "span", "agent", "planner", "error", "waited for a reply of worker: reply_timeout", ["worker"]],
    ["message", "mark", "agent", "worker", "success", "replied to planner", ["planner"]],
    ["wait", "span", "agent", "worker", "success", "waited for messages", []],
    ["message", "mark", "agent", "planner", "success", "event to everybody", ["worker"]],
    ["wait", "span", "agent", "worker", "error", "waited at barrier merged: barrier_timeout", []],
    ["barrier", "mark", "agent", "planner", "success", "arrived at barrier merged", []],
    ["drive", "mark", "room", null, "success", "wrote /a.txt (4 bytes)", []],
  ]);
  expect(items[1].ref).toEqual({ type: "message", id: sent.message_id });
  for (const [at, least] of [
    [2, 100],
    [4, 80],
    [6, 60],
  ] as const) {
    const lasted = Date.parse(items[at].until) - Date.parse(items[at].at);
    expect([lasted >= least - 2, lasted < least + 5000]).toEqual([true, true]);
    // One after another, as they were called.
    expect(items[at].until <= items[at + 1].at).toBe(true);
  }
});

describe("an open wait", () => {
  test("is on the first page until it ends", async () => {
    const room = await roomOf();
    const reading = daemon.api("GET", `${room.path}/messages?agent_id=worker&wait_ms=20000`);
    await until(room.timeline, (seen: Json) => seen.open.length === 1);
    const arriving = room.arrive({ agent_id: "planner", participants: ["planner", "worker"], timeout_ms: 20_000 });
    const { open } = await until(room.timeline, (seen: Json) => seen.open.length === 2);
    expect(open).toEqual([
      expect.objectContaining({
        agent_id: "worker",
        type: "wait",
        kind: "span",
        until: null,
        seq: null,
      }),
      expect.objectContaining({
        agent_id: "planner",
        type: "wait",
        to: ["worker"],
        ref: { type: "barrier", id: "merged" },
      }),
    ]);
    expect((await room.timeline("agent_id=worker")).open).toHaveLength(1);
    expect((await room.timeline("types=command,message")).open).toEqual([]);
    expect((await room.timeline("until=2020-01-01T00:00:00Z")).open).toEqual([]);
    await room.arrive({ agent_id: "worker", timeout_ms: 0 });
    await room.send({ source: "planner", destination: "worker" });
    expect([(await reading).status, (await arriving).status]).toEqual([200, 200]);
    expect((await room.timeline()).open).toEqual([]);
    const first = await room.timeline("limit=1");
    expect((await room.timeline(`cursor=${first.next_cursor}`)).open).toEqual([]);
  });
});

describe("pages", () => {
  const MESSAGES = 2500;
  let room: Awaited<ReturnType<typeof roomOf>>;
  beforeAll(async () => {
    room = await roomOf();
    for (let sent = 0; sent < MESSAGES; sent += 50) {
      await Promise.all([
        ...Array.from({ length: 50 }, (_, at) => room.send({ source: "a", topic: `nobody.n${sent + at}` })),
        // Between them, more than a page of reads.
        ...Array.from({ length: 10 }, () => daemon.ok("GET", `${room.path}/agents`)),
      ]);
    }
    for (let read = 0; read < 300; read++) await daemon.ok("GET", room.path);
  }, 120_000);

  async function walk(query: string): Promise<TimelineItem[]> {
    const items: TimelineItem[] = [];
    for (let cursor = ""; ; ) {
      const page = await room.timeline(`${query}${cursor}`);
      expect(page.items.length).toBeGreaterThan(0);
      items.push(...page.items);
      if (page.next_cursor === null) return items;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }

  test("in either order have every item once, and none is empty because of omitted reads", async () => {
    const ascending = await walk("order=asc&limit=170&types=message");
    expect(ascending).toHaveLength(MESSAGES);
    expect(new Set(ascending.map(({ title }) => title)).size).toBe(MESSAGES);
    const seqs = ascending.map(({ seq }) => Number(seq));
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    const descending = await walk("limit=999&types=message");
    expect(descending.toReversed()).toEqual(ascending);
    expect((await room.timeline()).items).toEqual(descending.slice(0, 200));
  });

  test("are equal to toItem applied to each record of the room", async () => {
    const response = await fetch(`${daemon.url}${room.path}/audit?order=asc`, {
      headers: { ...bearer(daemon.apiKey), accept: "application/x-ndjson" },
    });
    const records = (await response.text())
      .trimEnd()
      .split("\n")
      .map((text) => JSON.parse(text));
    expect(records.length).toBeGreaterThan(MESSAGES + 300);
    const items = records.flatMap((record) => toItem(record) ?? []);
    expect(await walk("order=asc&limit=1000")).toEqual(items);
  });

  test("continue at their cursor while events are added", async () => {
    const first = await room.timeline("limit=10");
    await room.send({ source: "b", topic: "nobody.later" });
    const second = await room.timeline(`limit=10&cursor=${first.next_cursor}`);
    const both = [...titles(first), ...titles(second)];
    expect(new Set(both).size).toBe(20);
    expect((await room.timeline("limit=1&agent_id=b")).items).toMatchObject([{ agent_id: "b" }]);
  });
});

test("are filtered by time, agent and type; an invalid query is explained", async () => {
  const room = await roomOf();
  await room.send({ source: "a", topic: "x" });
  await room.arrive({ agent_id: "b", parties: 2, timeout_ms: 0 });
  expect(typesOf(await room.timeline("types=barrier,room"))).toEqual(["barrier", "room"]);
  expect((await room.timeline("agent_id=a")).items).toMatchObject([{ type: "message", agent_id: "a" }]);
  const { items } = await room.timeline("order=asc");
  expect(titles(await room.timeline(`since=${items[2].at}`))).toContain(items[2].title);
  expect(titles(await room.timeline("until=2020-01-01T00:00:00Z"))).toEqual([]);
  for (const query of [
    "types=nonsense",
    "types=wait,",
    "limit=0",
    "limit=1001",
    "since=2026-13-01T00:00:00Z",
    "order=up",
  ]) {
    const answer = await daemon.api("GET", `${room.path}/timeline?${query}`);
    expect([query, answer.status]).toEqual([query, 422]);
  }
  // A cursor of another list is invalid here.
  const audit = await daemon.ok("GET", `${room.path}/audit?limit=1`);
  const mistaken = await daemon.api("GET", `${room.path}/timeline?cursor=${audit.next_cursor}`);
  expect(mistaken.body.code).toBe("invalid_cursor");
});

test("require audit:read", async () => {
  const room = await roomOf();
  const { key } = await makeKey(daemon, { scopes: ["fabric:read"] });
  const answer = await bare(daemon, "GET", `${room.path}/timeline`, bearer(key));
  expect([answer.status, answer.body.code]).toEqual([403, "insufficient_scope"]);
  expect((await bare(daemon, "GET", `${room.path}/waits`, bearer(key))).status).toBe(200);
});

test("of a destroyed room are not found, like its audit; a new room of that name starts empty", async () => {
  const room = await roomOf();
  await room.send({ source: "a", topic: "x" });
  await daemon.ok("DELETE", room.path);
  const codes = await until(
    async () =>
      await Promise.all(
        ["timeline", "audit"].map(async (list) => (await daemon.api("GET", `${room.path}/${list}`)).body.code),
      ),
    ([code]) => code !== undefined,
  );
  expect(codes).toEqual(["room_not_found", "room_not_found"]);
  await daemon.room(room.id);
  expect(titles(await room.timeline())).toEqual(["room created"]);
});

test("the command prints one line per item, and with --follow new ones until the room ends", async () => {
  const room = await roomOf();
  await room.send({ source: "a", topic: "x" });
  const { status, stdout } = await daemon.cli(["timeline", room.id, "--order", "asc"]);
  expect(status).toBe(0);
  const items = (await room.timeline("order=asc")).items.map(({ type, title }: TimelineItem) => [type, title]);
  const rows = stdout.trimEnd().split("\n").slice(1);
  expect(rows).toEqual(
    items.map(([type = "", title = ""]) => expect.stringMatching(new RegExp(` ${type} .* ${title}$`))),
  );
  const following = daemon.cli(["timeline", room.id, "--follow", "--json"]);
  await until(
    async () => (await daemon.ok("GET", `${room.path}/audit?event=audit.followed`)).items.length,
    (streams) => streams === 1,
  );
  await room.send({ source: "a", topic: "y" });
  await daemon.ok("DELETE", room.path);
  const followed = await following;
  expect(followed.status).toBe(0);
  const lines = followed.stdout
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text));
  expect(lines.map(({ type }) => type)).toEqual(["room", "message", "message", "room"]);
});
